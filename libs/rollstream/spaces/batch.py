"""What flows between steps: `Rollout` inside an actor, `Batch` everywhere else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Batch", "Columns", "Episodes", "Rollout"]

Columns = Mapping[str, npt.NDArray[Any]]
"""Arrays by dotted column name; all with the same leading axis."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Episodes:
    """Episodes that ended: undiscounted return and length in environment steps of each, arrays [E]."""

    returns: npt.NDArray[np.float64] = field(default_factory=lambda: np.zeros(0, np.float64))
    lengths: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))

    def __len__(self) -> int:
        return len(self.returns)

    @staticmethod
    def concatenate(parts: list[Episodes]) -> Episodes:
        if not parts:
            return Episodes()
        return Episodes(
            returns=np.concatenate([part.returns for part in parts]),
            lengths=np.concatenate([part.lengths for part in parts]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    """What N environments did in T vector steps, as rows; lives only inside one actor.

    Attributes:
        rows: structured array [R] of the RowSpec's dtype, environment after environment, each in time order.
        offsets: int64 [N+1]; rows of environment e are `rows[offsets[e]:offsets[e+1]]`. They continue the rows of the
            previous rollout without a gap.
        next_observation: the observation after each environment's last row, columns [N, ...]. It becomes the next rollout's
            first row; used to bootstrap. Where an environment's last row is FINAL, it is the first observation of the next
            episode or (NEXT_STEP autoreset) not yet meaningful; then nothing is bootstrapped from it.
        version: weights that acted (the rollout uses one version throughout).
        env_steps: transitions in it: rows without FINAL.
        episodes: those that ended in it.
        policy: whose agents these are, one an "environment"; empty where each environment is one agent.
    """

    rows: npt.NDArray[np.void]
    offsets: npt.NDArray[np.int64]
    next_observation: Columns
    version: int
    env_steps: int
    episodes: Episodes
    policy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Rows as columns: the item of every learner-side stream and the payload of every edge message.

    Attributes:
        columns: arrays [M, ...]; may be empty (a batch of counts only, when the rows went to a table).
        env_steps: environment steps that this item accounts for. Steps must conserve it: sampled = trained + stored +
            dropped + in flight is computed from it.
        version: oldest weights that acted in it.
        newest_version: newest weights that acted in it.
        actor, sequence: who made it, and its number there (counted from 1); empty and 0 once joined with others.
        episodes: episodes that ended.
        metrics: scalars that a step wants reported, e.g. `loss`; the last value wins when batches are joined.
    """

    columns: Columns
    env_steps: int
    version: int
    newest_version: int
    actor: str = ""
    sequence: int = 0
    episodes: Episodes = field(default_factory=Episodes)
    metrics: Mapping[str, float] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """Leading axis of the columns; 0 when there are none."""
        return len(next(iter(self.columns.values()))) if self.columns else 0
