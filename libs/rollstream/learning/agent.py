"""What the learner asks of an algorithm. Each algorithm's `agent.py` answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from rollstream.spaces import Batch, Columns

__all__ = ["Learned", "LearningAgent", "SampledItems"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """What one call of `learn` did.

    Attributes:
        updates: optimizer steps.
        metrics: scalars to report.
        columns: per-row results that later steps need, e.g. `td_error` [M].
    """

    updates: int
    metrics: Mapping[str, float]
    columns: Columns = field(default_factory=dict)


class SampledItems(Protocol):
    """A batch of items sampled from a table (`rollstream.replay.Sample`)."""

    @property
    def probability(self) -> npt.NDArray[np.float64]: ...

    @property
    def table_items(self) -> int: ...

    @property
    def rows(self) -> Mapping[str, npt.NDArray[Any]]:
        """Arrays [B, L, ...] by column."""
        ...

    @property
    def lengths(self) -> npt.NDArray[np.int32]: ...

    @property
    def lead(self) -> npt.NDArray[np.int32]: ...

    @property
    def core_start(self) -> int:
        """The column of `rows` at which every item's core begins."""
        ...


class LearningAgent(Protocol):
    """An algorithm's learning half. `env_steps` is the experiment's counter: schedules are functions of it alone."""

    def learn(self, batch: Batch, *, env_steps: int) -> Learned:
        """Update the parameters with `batch`."""
        ...

    def columns(self, sample: SampledItems, *, env_steps: int) -> Columns:
        """Items of a table as the columns that `learn` takes."""
        ...

    def tensors(self, *, env_steps: int) -> Mapping[str, npt.NDArray[np.float32]]:
        """What actors need: parameters by name, and settings of acting under `scalar.<name>`."""
        ...

    def sync_target(self) -> None:
        """Copy the parameters to the target network, if there is one."""
        ...

    def state(self) -> dict[str, Any]:
        """Everything that must survive a restart: parameters, moments, generator states."""
        ...

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from `state`."""
        ...
