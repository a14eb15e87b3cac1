"""The loss of IMPALA: an actor-critic that learns from sequences which older weights acted."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

from rollstream.errors import ConfigError
from rollstream.graph.inputs import Arguments, Input
from rollstream.graph.losses.columns import DISCOUNT, REWARD, WEIGHT, coefficient
from rollstream.graph.losses.loss import LossResult
from rollstream.graph.losses.policies import Evaluates
from rollstream.graph.losses.sequences import evaluate_steps, over_time, steps_arguments, time_major
from rollstream.graph.ops import Array
from rollstream.graph.returns import vtrace
from rollstream.graph.scope import Scope, api

__all__ = ["VtraceLoss"]


@dataclass(frozen=True)
class VtraceLoss:
    """Espeholt et al. 2018 (arXiv 1802.01561), section 4.2. Rows are sequences of T steps and one row more, which bootstraps:

        row     0      1     ...    T-1     T
                s, a, r            s, a, r  s            minimize  mean of  - rho log pi(a|s) A  + c1 (v - V(s))²  - c2 S
        value   V0     V1    ...    VT-1    VT

    Targets v and advantages rho A are those of `returns.vtrace`, and no gradient flows through them. Rows of several episodes may
    follow each other: the final observation of an episode is a row of its own (it bootstraps, truncated or not), with weight 0;
    `continues` is 0 at it and at the step before.

    Attributes:
        steps: T.
        lambda_, rho_clip, c_clip, advantage_rho_clip: of `returns.vtrace`.
    """

    policy: Evaluates
    _: KW_ONLY
    steps: int
    lambda_: float = 1.0
    rho_clip: float = 1.0
    c_clip: float = 1.0
    advantage_rho_clip: float = 1.0

    apis: ClassVar[tuple[str, ...]] = ("loss",)
    metric_names: ClassVar[tuple[str, ...]] = ("policy_loss", "value_loss", "entropy", "ratio")

    def __post_init__(self) -> None:
        if not self.policy.value:
            raise ConfigError("VtraceLoss.loss needs the policy's value head; build it with value=True")
        if self.steps < 1:
            raise ConfigError(f"VtraceLoss needs steps >= 1, got {self.steps}")

    def arguments(self, api: str) -> Arguments:
        rows = self.steps + 1
        continues = Input(name="continues", low=0.0, high=1.0)
        log_prob = Input(name="log_prob", low=-2.0, high=-0.1)
        return {
            **steps_arguments(self.policy, steps=rows),
            "log_prob": over_time(log_prob, steps=rows),
            "reward": over_time(REWARD, steps=rows),
            "discount": over_time(DISCOUNT, steps=rows),
            "continues": over_time(continues, steps=rows),
            "weight": over_time(WEIGHT, steps=rows),
            "value_coefficient": coefficient("value_coefficient"),
            "entropy_coefficient": coefficient("entropy_coefficient", high=0.1),
        }

    @api
    def loss(
        self,
        scope: Scope,
        *,
        observation: Mapping[str, Array],
        action: Mapping[str, Array],
        log_prob: Array,
        reward: Array,
        discount: Array,
        continues: Array,
        weight: Array,
        value_coefficient: Array | float,
        entropy_coefficient: Array | float,
        recurrent: Mapping[str, Array] | None = None,
        first: Array | None = None,
    ) -> LossResult:
        """Shapes: all columns [B, T+1] (observations and actions [B, T+1, ...]); of the last only the observation counts.

        `log_prob` is that of the policy that acted. Rows afterwards: `td_error` [B], the mean size of v - V(s) over the steps that count.
        """
        ops = scope.ops
        now = evaluate_steps(self.policy, scope, observation=observation, action=action, recurrent=recurrent, first=first)
        value, acted, entropy = (time_major(ops, each) for each in (now.value, now.log_prob, now.entropy))
        before, reward_t, discount_t, continues_t, weight_t = (
            time_major(ops, each)[:-1] for each in (log_prob, reward, discount, continues, weight)
        )
        still = ops.stop_gradient
        ratio = ops.exp(still(acted)[:-1] - before)
        fixed = still(value)
        found = vtrace(
            ops,
            reward_t,
            discount_t,
            fixed[:-1],
            fixed[1:],
            ratio,
            continues_t,
            lambda_=self.lambda_,
            rho_clip=self.rho_clip,
            c_clip=self.c_clip,
            advantage_rho_clip=self.advantage_rho_clip,
        )
        gain = acted[:-1] * found.advantage
        error = found.target - value[:-1]
        squared = error * error
        share = weight_t / ops.sum(weight_t)
        loss = ops.sum((value_coefficient * squared - gain - entropy_coefficient * entropy[:-1]) * share)
        metrics = [ops.sum(still(each) * share) for each in (-gain, squared, entropy[:-1], ratio)]
        size = ops.sum(ops.abs(still(error)) * weight_t, axis=0) / ops.clip(ops.sum(weight_t, axis=0), 1e-6, math.inf)
        return LossResult(loss=loss, metrics=ops.stack(metrics), rows={"td_error": size})
