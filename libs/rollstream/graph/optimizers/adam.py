"""Adam on one flat parameter vector."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rollstream.errors import ConfigError
from rollstream.graph.ops import Array, Ops

__all__ = ["Adam", "AdamMoments", "adam_step"]


@dataclass(frozen=True, slots=True, kw_only=True)
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

    def __post_init__(self) -> None:
        for name, decay in (("b1", self.b1), ("b2", self.b2)):
            if not 0.0 < decay < 1.0:
                raise ConfigError(f"Adam's {name} must lie in (0, 1), got {decay}")
        if not self.epsilon > 0.0:
            raise ConfigError(f"Adam's epsilon must be > 0, got {self.epsilon}")


@dataclass(frozen=True, slots=True, kw_only=True)
class AdamMoments:
    """Parameters and moments after a step, [P] each."""

    parameters: Array
    first: Array
    second: Array


def adam_step(
    ops: Ops,
    before: AdamMoments,
    gradient: Array,
    *,
    count: Array,
    learning_rate: Array | float,
    settings: Adam,
) -> AdamMoments:
    """One step, algorithm 1 of the paper. `count` is the number of this step, from 1, as a float array [].

    Shapes: gradient [P] -> [P] each.
    """
    first = before.first + (gradient - before.first) * (1.0 - settings.b1)
    second = before.second * settings.b2 + gradient * gradient * (1.0 - settings.b2)
    first_bias = -ops.expm1(count * math.log(settings.b1))  # 1 - b1^count, exact also where b^count is almost 1
    second_bias = -ops.expm1(count * math.log(settings.b2))
    size = learning_rate / first_bias
    parameters = before.parameters - size * (first / (ops.sqrt(second / second_bias) + settings.epsilon))
    return AdamMoments(parameters=parameters, first=first, second=second)
