"""What a rule would refuse when rows are cut is refused with the step that brings it, so that no writer holds rows it cannot write."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from rollstream.errors import TableError
from rollstream.replay.item_priority import columns_of
from rollstream.replay.rules import Episode, ItemRule

__all__ = ["StepGuards"]


class StepGuards:
    """Guards of the rules of one writer.

    Attributes:
        finite: columns that item priorities are computed from.
        longest_steps: most steps that an episode may have; None: any number.
    """

    def __init__(self, rules: Iterable[ItemRule]) -> None:
        given = tuple(rules)
        priorities = [getattr(rule, "priority", None) for rule in given]
        self.finite = frozenset(name for one in priorities for name in columns_of(one))
        lengths = [rule.max_length for rule in given if isinstance(rule, Episode) and rule.overlong == "error"]
        self.longest_steps = min(lengths, default=None)

    def require_short(self, env: npt.NDArray[np.int64], rows: npt.NDArray[np.int64]) -> None:
        """Refuse that the episodes of environments `env` [K] come to have so many `rows` [K]."""
        if self.longest_steps is None:
            return
        over = np.flatnonzero(rows > self.longest_steps + 1)
        if len(over):
            raise TableError(
                f"an episode of environment {env[over[0]]} would have {rows[over[0]] - 1} steps, where Episode takes at most "
                f"max_length {self.longest_steps}; end the episode before, raise max_length, or say overlong='split'"
            )
