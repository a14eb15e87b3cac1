"""Adam on one flat parameter vector."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from rollstream.errors import ConfigError
from rollstream.graph.ops import Array, Ops
from rollstream.graph.optimizers.optimizer import Moved

__all__ = ["Adam"]


@dataclass(frozen=True, kw_only=True)
class Adam:
    """Settings of Kingma & Ba 2015 (arXiv 1412.6980), algorithm 1.

    Attributes:
        b1, b2: decay of the first and second moment, as in the paper.
        epsilon: added to the root of the second moment. 1e-5, as PPO implementations use, larger than the paper's 1e-8: it
            damps steps while gradients are tiny.
    """

    b1: float = 0.9
    b2: float = 0.999
    epsilon: float = 1e-5

    slots: ClassVar[tuple[str, ...]] = ("first_moment", "second_moment")

    def __post_init__(self) -> None:
        for name, decay in (("b1", self.b1), ("b2", self.b2)):
            if not 0.0 < decay < 1.0:
                raise ConfigError(f"Adam's {name} must lie in (0, 1), got {decay}")
        if not self.epsilon > 0.0:
            raise ConfigError(f"Adam's epsilon must be > 0, got {self.epsilon}")

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
        first = slots[0] + (gradient - slots[0]) * (1.0 - self.b1)
        second = slots[1] * self.b2 + gradient * gradient * (1.0 - self.b2)
        first_bias = -ops.expm1(count * math.log(self.b1))  # 1 - b1^count, exact also where b1^count is almost 1
        second_bias = -ops.expm1(count * math.log(self.b2))
        size = learning_rate / first_bias
        moved = parameters - size * (first / (ops.sqrt(second / second_bias) + self.epsilon))
        return Moved(parameters=moved, slots=(first, second))
