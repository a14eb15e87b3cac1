"""RMSProp on one flat parameter vector."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rollstream.errors import ConfigError
from rollstream.graph.ops import Array, Ops
from rollstream.graph.optimizers.optimizer import Moved

__all__ = ["RmsProp"]


@dataclass(frozen=True, kw_only=True)
class RmsProp:
    """Gradients divided by the root of their running mean square (Tieleman & Hinton 2012, lecture 6.5; centered: Graves 2013,
    arXiv 1308.0850, equations 38 to 45).

    There are two of them in the literature. PyTorch's adds `epsilon` to the root, and its mean square starts at 0: that is the
    default. TensorFlow's, which DQN and IMPALA used, adds it inside the root and starts at 1, so that first steps are small:
    `RmsProp(epsilon=0.1, epsilon_in_root=True, initial_square=1.0)`.

    Attributes:
        decay: share of the running means that is kept.
        epsilon: what keeps the quotient finite while gradients are tiny.
        epsilon_in_root: where it is added, see above.
        initial_square: where the mean square starts.
        centered: divide by the standard deviation: subtract the square of the running mean.
        momentum: share of past steps that is kept; 0 keeps none.
    """

    decay: float = 0.99
    epsilon: float = 1e-8
    epsilon_in_root: bool = False
    initial_square: float = 0.0
    centered: bool = False
    momentum: float = 0.0

    def __post_init__(self) -> None:
        if not 0.0 < self.decay < 1.0:
            raise ConfigError(f"RmsProp's decay must lie in (0, 1), got {self.decay}")
        if not self.epsilon > 0.0:
            raise ConfigError(f"RmsProp's epsilon must be > 0, got {self.epsilon}")
        if not self.initial_square >= 0.0:
            raise ConfigError(f"RmsProp's initial_square must be >= 0, got {self.initial_square}")
        if not 0.0 <= self.momentum < 1.0:
            raise ConfigError(f"RmsProp's momentum must lie in [0, 1), got {self.momentum}")

    @property
    def slots(self) -> tuple[str, ...]:
        """`mean_square`, and as needed `mean_gradient` and `momentum`."""
        return (
            "mean_square",
            *(("mean_gradient",) if self.centered else ()),
            *(("momentum",) if self.momentum else ()),
        )

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
        kept = list(slots)
        kept[0] = kept[0] * self.decay + gradient * gradient * (1.0 - self.decay)
        square = kept[0]
        if self.initial_square:  # what is left of the start, since slots start at 0
            square = square + self.initial_square * ops.exp(count * math.log(self.decay))
        if self.centered:
            kept[1] = kept[1] + (gradient - kept[1]) * (1.0 - self.decay)
            square = ops.maximum(square - kept[1] * kept[1], ops.zeros_like(square))  # rounding may fall below 0
        root = ops.sqrt(square + self.epsilon) if self.epsilon_in_root else ops.sqrt(square) + self.epsilon
        along = gradient / root
        if self.momentum:
            kept[-1] = kept[-1] * self.momentum + along
            along = kept[-1]
        return Moved(parameters=parameters - learning_rate * along, slots=tuple(kept))
