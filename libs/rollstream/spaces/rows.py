"""Which columns a row has: those of the observation, of the action, the reward, and what the algorithm adds."""

from __future__ import annotations

from collections.abc import Sequence

from rollstream.spaces.leaf import Leaf
from rollstream.spaces.row_spec import Column, RowSpec

__all__ = ["REWARD", "row_spec"]

REWARD = Column(name="reward", dtype="<f4")


def row_spec(observation_leaves: Sequence[Leaf], action_leaves: Sequence[Leaf], extra: Sequence[Column] = ()) -> RowSpec:
    """The row layout `observation..., action..., reward, extra...`; dtypes are those of the spaces."""
    return RowSpec((*(leaf.column for leaf in (*observation_leaves, *action_leaves)), REWARD, *extra))
