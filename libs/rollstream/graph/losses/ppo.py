"""The clipped surrogate loss of PPO."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from rollstream.errors import ConfigError
from rollstream.graph.inputs import Arguments, Input, columns_of
from rollstream.graph.losses.loss import LossResult
from rollstream.graph.ops import Array
from rollstream.graph.policies import ActorCriticPolicy
from rollstream.graph.scope import Scope, api

__all__ = ["PpoLoss"]


@dataclass(frozen=True)
class PpoLoss:
    """Schulman et al. 2017 (arXiv 1707.06347): minimize -L^CLIP + c1 L^VF - c2 S, equations 7 and 9.

    With r = pi(a|s) / pi_old(a|s):  L^CLIP = mean min(r A, clip(r, 1 - e, 1 + e) A),  L^VF = mean (V(s) - R)²,  S = mean entropy.
    Means are weighted by `weight` (0 for padding), and no loss of the value is clipped. Advantages come ready from outside.
    """

    policy: ActorCriticPolicy

    apis: ClassVar[tuple[str, ...]] = ("loss",)
    metric_names: ClassVar[tuple[str, ...]] = ("policy_loss", "value_loss", "entropy", "approximate_kl", "clipped_fraction")

    def __post_init__(self) -> None:
        if not self.policy.value:
            raise ConfigError("PpoLoss.loss needs the policy's value head; build ActorCriticPolicy with value=True")

    def arguments(self, api: str) -> Arguments:
        return {
            "observation": columns_of(self.policy.observation),
            "action": self.policy.action_columns,
            "log_prob": Input(name="log_prob", low=-2.0, high=-0.1),
            "advantage": Input(name="advantage"),
            "return_": Input(name="return"),
            "weight": Input(name="weight", low=0.5, high=1.0),
            "clip_ratio": Input(name="clip_ratio", role="scalar", per_row=False, low=0.1, high=0.3),
            "value_coefficient": Input(name="value_coefficient", role="scalar", per_row=False, low=0.1, high=1.0),
            "entropy_coefficient": Input(name="entropy_coefficient", role="scalar", per_row=False, low=0.0, high=0.1),
        }

    @api
    def loss(
        self,
        scope: Scope,
        *,
        observation: Mapping[str, Array],
        action: Mapping[str, Array],
        log_prob: Array,
        advantage: Array,
        return_: Array,
        weight: Array,
        clip_ratio: Array | float,
        value_coefficient: Array | float,
        entropy_coefficient: Array | float,
    ) -> LossResult:
        """Shapes: all columns [B] (observations [B, ...]); `log_prob` is that of the policy that acted."""
        ops = scope.ops
        share = weight / ops.sum(weight)
        now = self.policy.evaluate(scope, observation=observation, action=action)
        log_ratio = now.log_prob - log_prob
        ratio = ops.exp(log_ratio)
        # A + e |A| is (1 + e) A for A >= 0 and (1 - e) A below: the side of the clip that can win the minimum
        surrogate = ops.minimum(ratio * advantage, advantage + clip_ratio * ops.abs(advantage))
        value_error = now.value - return_
        squared_error = value_error * value_error
        loss = ops.dot(value_coefficient * squared_error - surrogate - entropy_coefficient * now.entropy, share)
        still = ops.stop_gradient
        ratio = still(ratio)
        rows = [
            -still(surrogate),
            still(squared_error),
            still(now.entropy),
            ratio - 1.0 - still(log_ratio),
            ops.to_float(ops.abs(ratio - 1.0) > clip_ratio),
        ]
        return LossResult(loss=loss, metrics=ops.dot(ops.stack(rows), share), rows={})
