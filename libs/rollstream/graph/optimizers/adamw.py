"""Adam with decoupled weight decay on one flat parameter vector."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rollstream.errors import ConfigError
from rollstream.graph.ops import Array, Ops
from rollstream.graph.optimizers.adam import Adam
from rollstream.graph.optimizers.optimizer import Moved

__all__ = ["AdamW"]


@dataclass(frozen=True, kw_only=True)
class AdamW:
    """Loshchilov & Hutter 2019 (arXiv 1711.05101), algorithm 2: parameters shrink by learning_rate times weight_decay beside Adam's step.

    Attributes:
        weight_decay: share of the parameters that is taken away at a learning rate of 1.
        b1, b2, epsilon: of `Adam`.
    """

    weight_decay: float = 1e-2
    b1: float = Adam.b1
    b2: float = Adam.b2
    epsilon: float = Adam.epsilon

    slots: ClassVar[tuple[str, ...]] = Adam.slots

    def __post_init__(self) -> None:
        if not self.weight_decay >= 0.0:
            raise ConfigError(f"AdamW's weight_decay must be >= 0, got {self.weight_decay}")
        self._adam()

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
        kept = parameters - learning_rate * self.weight_decay * parameters
        return self._adam().step(ops, kept, slots, gradient, count=count, learning_rate=learning_rate)

    def _adam(self) -> Adam:
        return Adam(b1=self.b1, b2=self.b2, epsilon=self.epsilon)
