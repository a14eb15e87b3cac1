"""Clipping each number of a gradient, as part of an optimizer, so that every mode has it."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from rollstream.errors import ConfigError
from rollstream.graph.ops import Array, Ops
from rollstream.graph.optimizers.optimizer import Moved, Optimizer

__all__ = ["ValueClip"]


@dataclass(frozen=True)
class ValueClip:
    """`optimizer` sees every number of the gradient clipped to [-limit, limit]; after the global norm was, if it is clipped too.

    Attributes:
        limit: largest size of a number of the gradient.
    """

    optimizer: Optimizer
    _: KW_ONLY
    limit: float

    def __post_init__(self) -> None:
        if not self.limit > 0.0:
            raise ConfigError(f"ValueClip's limit must be > 0, got {self.limit}")

    @property
    def slots(self) -> tuple[str, ...]:
        """Those of the optimizer."""
        return self.optimizer.slots

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
        """See `Optimizer.step`."""
        clipped = ops.clip(gradient, -self.limit, self.limit)
        return self.optimizer.step(ops, parameters, slots, clipped, count=count, learning_rate=learning_rate)
