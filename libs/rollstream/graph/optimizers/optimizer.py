"""What every optimizer is: settings, the vectors that it keeps, and one pure step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from rollstream.graph.ops import Array, Ops

__all__ = ["Moved", "Optimizer"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """Parameters and slots after a step, [P] each."""

    parameters: Array
    slots: tuple[Array, ...]


class Optimizer(Protocol):
    """Attributes:
    slots: names of the vectors [P] that it keeps from step to step, all 0 at first; they name arrays of a checkpoint.
    """

    @property
    def slots(self) -> tuple[str, ...]: ...

    def step(
        self,
        ops: Ops,
        parameters: Array,
        slots: tuple[Array, ...],
        gradient: Array,
        *,
        count: Array,
        learning_rate: Array | float,
    ) -> Moved:
        """One step.

        Args:
            parameters, gradient: [P].
            slots: as named, [P] each.
            count: the number of this step, from 1, as a float array [].
            learning_rate: a number, or one for each parameter [P].
        """
        ...
