"""MARWIL: imitate what went better than expected more than what went worse."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

from rollstream.errors import ConfigError
from rollstream.graph.inputs import Arguments, Input, columns_of
from rollstream.graph.losses.columns import WEIGHT, coefficient
from rollstream.graph.losses.loss import LossResult
from rollstream.graph.losses.policies import Evaluates
from rollstream.graph.ops import Array
from rollstream.graph.scope import Scope, api

__all__ = ["MarwilLoss"]


@dataclass(frozen=True)
class MarwilLoss:
    """Wang et al. 2018 (NeurIPS, "Exponentially weighted imitation learning for batched historical data"), algorithm 1:

        minimize  mean of  - min(max_weight, exp(beta A / scale)) log pi(a|s)  + c1 A²,   A = R - V(s)

    No gradient flows through the weight. `advantage_scale` is the root of a running mean of A², kept by whoever updates: the
    metric `squared_advantage` is what to take into it. With beta 0 it is behavior cloning.

    Attributes:
        max_weight: no row counts more than that, however well it went.
    """

    policy: Evaluates
    _: KW_ONLY
    max_weight: float = 20.0

    apis: ClassVar[tuple[str, ...]] = ("loss",)
    metric_names: ClassVar[tuple[str, ...]] = ("policy_loss", "squared_advantage", "entropy", "imitation_weight")

    def __post_init__(self) -> None:
        if not self.policy.value:
            raise ConfigError("MarwilLoss.loss needs the policy's value head; build it with value=True")
        if not self.max_weight > 0:
            raise ConfigError(f"max_weight must be > 0, got {self.max_weight}; for no limit use a large one, e.g. 1e9")

    def arguments(self, api: str) -> Arguments:
        return {
            "observation": columns_of(self.policy.observation),
            "action": self.policy.action_columns,
            "return_": Input(name="return"),
            "weight": WEIGHT,
            "beta": coefficient("beta"),
            "advantage_scale": Input(name="advantage_scale", role="scalar", per_row=False, low=0.5, high=2.0),
            "value_coefficient": coefficient("value_coefficient"),
        }

    @api
    def loss(
        self,
        scope: Scope,
        *,
        observation: Mapping[str, Array],
        action: Mapping[str, Array],
        return_: Array,
        weight: Array,
        beta: Array | float,
        advantage_scale: Array | float,
        value_coefficient: Array | float,
    ) -> LossResult:
        """Shapes: all columns [B] (observations and actions [B, ...]). Rows afterwards: `advantage` [B]."""
        ops = scope.ops
        share = weight / ops.sum(weight)
        now = self.policy.evaluate(scope, observation=observation, action=action)
        advantage = return_ - now.value
        squared = advantage * advantage
        still = ops.stop_gradient(advantage)
        exponent = still * (beta / advantage_scale)
        imitation = ops.exp(ops.minimum(exponent, ops.ones_like(exponent) * math.log(self.max_weight)))
        policy_loss = -imitation * now.log_prob
        rows = ops.stop_gradient(ops.stack([policy_loss, squared, now.entropy, imitation]))
        return LossResult(
            loss=ops.dot(policy_loss + value_coefficient * squared, share),
            metrics=ops.dot(rows, share),
            rows={"advantage": still},
        )
