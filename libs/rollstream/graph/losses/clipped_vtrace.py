"""The loss of APPO: PPO's clipped surrogate on V-trace advantages, around a target network that moves slowly."""

from __future__ import annotations

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

__all__ = ["ClippedVtraceLoss"]


@dataclass(frozen=True)
class ClippedVtraceLoss:
    """Luo et al. 2020 (IMPACT, arXiv 1912.00167), section 3: three policies take part. `mu` acted, `target` is a copy of the network
    from some updates ago, `pi` learns. Rows are those of `VtraceLoss`.

        A, v   V-trace advantages and targets of `target` from what `mu` did, with the values V of the network that learns
        r      min(mu / target, worker_clip) pi / mu
        minimize  mean of  - min(r A, clip(r, 1 - e, 1 + e) A)  + c1 (v - V)²  - c2 S  + c3 KL(target, pi)

    So the clip holds `pi` near a policy that stays for a while, not near the many that acted. The divergence is estimated by
    q - 1 - log q, q = pi / target, which is never below 0.

    Attributes:
        steps: T.
        lambda_, rho_clip, c_clip: of `returns.vtrace`.
        worker_clip: largest mu / target that counts [rho of the paper].
    """

    policy: Evaluates
    _: KW_ONLY
    steps: int
    lambda_: float = 1.0
    rho_clip: float = 1.0
    c_clip: float = 1.0
    worker_clip: float = 2.0

    apis: ClassVar[tuple[str, ...]] = ("loss",)
    metric_names: ClassVar[tuple[str, ...]] = (
        "policy_loss",
        "value_loss",
        "entropy",
        "ratio",
        "approximate_kl",
        "clipped_fraction",
    )

    def __post_init__(self) -> None:
        if not self.policy.value:
            raise ConfigError("ClippedVtraceLoss.loss needs the policy's value head; build it with value=True")
        if self.steps < 1:
            raise ConfigError(f"ClippedVtraceLoss needs steps >= 1, got {self.steps}")

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
            "clip_ratio": Input(name="clip_ratio", role="scalar", per_row=False, low=0.1, high=0.3),
            "value_coefficient": coefficient("value_coefficient"),
            "entropy_coefficient": coefficient("entropy_coefficient", high=0.1),
            "kl_coefficient": coefficient("kl_coefficient"),
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
        clip_ratio: Array | float,
        value_coefficient: Array | float,
        entropy_coefficient: Array | float,
        kl_coefficient: Array | float,
        recurrent: Mapping[str, Array] | None = None,
        first: Array | None = None,
    ) -> LossResult:
        """Shapes: all columns [B, T+1] (observations and actions [B, T+1, ...]); of the last only the observation counts."""
        ops = scope.ops
        now = evaluate_steps(self.policy, scope, observation=observation, action=action, recurrent=recurrent, first=first)
        slow = evaluate_steps(
            self.policy, scope.target(), observation=observation, action=action, recurrent=recurrent, first=first
        )
        value, learns, entropy, target = (time_major(ops, each) for each in (now.value, now.log_prob, now.entropy, slow.log_prob))
        acted, reward_t, discount_t, continues_t, weight_t = (
            time_major(ops, each)[:-1] for each in (log_prob, reward, discount, continues, weight)
        )
        still = ops.stop_gradient
        learns, target, fixed = learns[:-1], still(target)[:-1], still(value)
        found = vtrace(
            ops,
            reward_t,
            discount_t,
            fixed[:-1],
            fixed[1:],
            ops.exp(target - acted),
            continues_t,
            lambda_=self.lambda_,
            rho_clip=self.rho_clip,
            c_clip=self.c_clip,
            advantage_rho_clip=self.rho_clip,
        )
        advantage = found.advantage
        ratio = ops.clip(ops.exp(acted - target), 0.0, self.worker_clip) * ops.exp(learns - acted)
        # A + e |A| is (1 + e) A for A >= 0 and (1 - e) A below: the side of the clip that can win the minimum
        surrogate = ops.minimum(ratio * advantage, advantage + clip_ratio * ops.abs(advantage))
        error = found.target - value[:-1]
        squared = error * error
        moved = learns - target
        divergence = ops.exp(moved) - 1.0 - moved
        share = weight_t / ops.sum(weight_t)
        total = value_coefficient * squared - surrogate - entropy_coefficient * entropy[:-1] + kl_coefficient * divergence
        rows = [
            -still(surrogate),
            still(squared),
            still(entropy)[:-1],
            still(ratio),
            still(divergence),
            ops.to_float(ops.abs(still(ratio) - 1.0) > clip_ratio),
        ]
        metrics = ops.stack([ops.sum(each * share) for each in rows])
        return LossResult(loss=ops.sum(total * share), metrics=metrics, rows={})
