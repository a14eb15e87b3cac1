"""Stochastic gradient descent on one flat parameter vector."""

from __future__ import annotations

from dataclasses import dataclass

from rollstream.errors import ConfigError
from rollstream.graph.ops import Array, Ops
from rollstream.graph.optimizers.optimizer import Moved

__all__ = ["Sgd"]


@dataclass(frozen=True, kw_only=True)
class Sgd:
    """Steps along the gradient, or along a decaying sum of gradients (Sutskever et al. 2013, equations 1 to 4; the learning rate
    stands outside of the sum, so that it may change).

        g = gradient + weight_decay parameters;  v = momentum v + g;  parameters -= learning_rate (v, or g + momentum v for Nesterov)

    Attributes:
        momentum: share of the sum that is kept; 0 keeps none, and no slot.
        nesterov: look one step ahead.
        weight_decay: pull towards 0, as part of the gradient; 0 for none.
    """

    momentum: float = 0.0
    nesterov: bool = False
    weight_decay: float = 0.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.momentum < 1.0:
            raise ConfigError(f"Sgd's momentum must lie in [0, 1), got {self.momentum}")
        if self.nesterov and self.momentum == 0.0:
            raise ConfigError("Sgd's nesterov needs momentum > 0, got 0.0; without momentum there is nothing to look ahead with")
        if not self.weight_decay >= 0.0:
            raise ConfigError(f"Sgd's weight_decay must be >= 0, got {self.weight_decay}")

    @property
    def slots(self) -> tuple[str, ...]:
        """`momentum`, when there is any."""
        return ("momentum",) if self.momentum else ()

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
        if self.weight_decay:
            gradient = gradient + self.weight_decay * parameters
        if not self.momentum:
            return Moved(parameters=parameters - learning_rate * gradient, slots=())
        total = self.momentum * slots[0] + gradient
        along = gradient + self.momentum * total if self.nesterov else total
        return Moved(parameters=parameters - learning_rate * along, slots=(total,))
