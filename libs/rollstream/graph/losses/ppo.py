"""The clipped surrogate loss of PPO."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

from rollstream.errors import ConfigError
from rollstream.graph.inputs import Arguments, Input, columns_of
from rollstream.graph.losses.columns import WEIGHT, coefficient
from rollstream.graph.losses.loss import LossResult
from rollstream.graph.losses.policies import Evaluates
from rollstream.graph.losses.sequences import evaluate_steps, over_time, remembers, steps_arguments
from rollstream.graph.ops import Array, Ops
from rollstream.graph.policies.evaluation import Evaluation
from rollstream.graph.scope import Scope, api

__all__ = ["PpoLoss"]


@dataclass(frozen=True)
class PpoLoss:
    """Schulman et al. 2017 (arXiv 1707.06347): minimize -L^CLIP + c1 L^VF - c2 S, equations 7 and 9.

    With r = pi(a|s) / pi_old(a|s):  L^CLIP = mean min(r A, clip(r, 1 - e, 1 + e) A),  L^VF = mean (V(s) - R)²,  S = mean entropy.
    Means are weighted by `weight` (0 for padding). Advantages come ready from outside.

    Attributes:
        steps: rows are sequences of so many steps, as a policy that remembers needs; None: each row is one step.
        clip_value: a value may move by `value_clip` from what it was, column `value`; the larger of both errors counts (as in
            OpenAI's baselines, not in the paper).
        kl_penalty: adds `kl_coefficient` KL(pi_old, pi), equation 8, by the estimate r - 1 - log r, which is never below 0.
    """

    policy: Evaluates
    _: KW_ONLY
    steps: int | None = None
    clip_value: bool = False
    kl_penalty: bool = False

    apis: ClassVar[tuple[str, ...]] = ("loss",)
    metric_names: ClassVar[tuple[str, ...]] = ("policy_loss", "value_loss", "entropy", "approximate_kl", "clipped_fraction")

    def __post_init__(self) -> None:
        if not self.policy.value:
            raise ConfigError("PpoLoss.loss needs the policy's value head; build ActorCriticPolicy with value=True")
        if self.steps is not None and self.steps < 1:
            raise ConfigError(f"PpoLoss needs steps >= 1, got {self.steps}; for rows of one step leave it out")
        if self.steps is None and remembers(self.policy):
            raise ConfigError("PpoLoss of a policy that remembers needs steps, the length of the sequences that it learns from")

    def arguments(self, api: str) -> Arguments:
        series: dict[str, Input] = {
            "log_prob": Input(name="log_prob", low=-2.0, high=-0.1),
            "advantage": Input(name="advantage"),
            "return_": Input(name="return"),
            "weight": WEIGHT,
            **({"value": Input(name="value")} if self.clip_value else {}),
        }
        seen: Arguments = {"observation": columns_of(self.policy.observation), "action": self.policy.action_columns}
        if self.steps is not None:
            seen = steps_arguments(self.policy, steps=self.steps)
            series = {name: over_time(item, steps=self.steps) for name, item in series.items()}
        return {
            **seen,
            **series,
            "clip_ratio": Input(name="clip_ratio", role="scalar", per_row=False, low=0.1, high=0.3),
            "value_coefficient": coefficient("value_coefficient"),
            "entropy_coefficient": coefficient("entropy_coefficient", high=0.1),
            **({"value_clip": coefficient("value_clip")} if self.clip_value else {}),
            **({"kl_coefficient": coefficient("kl_coefficient")} if self.kl_penalty else {}),
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
        value: Array | None = None,
        value_clip: Array | float = 0.0,
        kl_coefficient: Array | float | None = None,
        recurrent: Mapping[str, Array] | None = None,
        first: Array | None = None,
    ) -> LossResult:
        """Shapes: all columns [B] (observations [B, ...]), or with `steps` [B, T]; `log_prob` is that of the policy that acted."""
        ops = scope.ops
        if self.steps is None:
            now = self.policy.evaluate(scope, observation=observation, action=action)
        else:
            judged = evaluate_steps(self.policy, scope, observation=observation, action=action, recurrent=recurrent, first=first)
            now = Evaluation(**{name: _flat(ops, getattr(judged, name)) for name in ("log_prob", "entropy", "value")})
            log_prob, advantage, return_, weight = (_flat(ops, each) for each in (log_prob, advantage, return_, weight))
            value = None if value is None else _flat(ops, value)
        share = weight / ops.sum(weight)
        log_ratio = now.log_prob - log_prob
        ratio = ops.exp(log_ratio)
        # A + e |A| is (1 + e) A for A >= 0 and (1 - e) A below: the side of the clip that can win the minimum
        surrogate = ops.minimum(ratio * advantage, advantage + clip_ratio * ops.abs(advantage))
        value_error = now.value - return_
        squared_error = value_error * value_error
        if value is not None:
            nearby = value + ops.clip(now.value - value, -value_clip, value_clip)
            squared_error = ops.maximum(squared_error, (nearby - return_) * (nearby - return_))
        total = value_coefficient * squared_error - surrogate - entropy_coefficient * now.entropy
        if kl_coefficient is not None:
            total = total + kl_coefficient * (ratio - 1.0 - log_ratio)
        still = ops.stop_gradient
        ratio = still(ratio)
        rows = [
            -still(surrogate),
            still(squared_error),
            still(now.entropy),
            ratio - 1.0 - still(log_ratio),
            ops.to_float(ops.abs(ratio - 1.0) > clip_ratio),
        ]
        return LossResult(loss=ops.dot(total, share), metrics=ops.dot(ops.stack(rows), share), rows={})


def _flat(ops: Ops, x: Array) -> Array:
    """[B, T] -> [B * T]."""
    return ops.reshape(x, (x.shape[0] * x.shape[1],))
