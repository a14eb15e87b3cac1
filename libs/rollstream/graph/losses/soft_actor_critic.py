"""The loss of SAC: twin critics, a stochastic actor, and a temperature that finds itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

from rollstream.graph.inputs import Arguments, columns_of
from rollstream.graph.losses.columns import DISCOUNT, REWARD, WEIGHT, noise_columns
from rollstream.graph.losses.loss import LossResult
from rollstream.graph.losses.policies import SoftActor
from rollstream.graph.ops import Array
from rollstream.graph.scope import Scope, api

__all__ = ["SoftActorCriticLoss"]


@dataclass(frozen=True)
class SoftActorCriticLoss:
    """Haarnoja et al. 2018 (arXiv 1812.05905), equations 5 to 7 and 18, as one sum of which each part moves parameters of its own:

        critics      (reward + discount (min Q_target(s', a') - alpha log pi(a'|s')) - Q_i(s, a))² / 2,   a' drawn by the actor
        actor        alpha log pi(a|s) - min Q_i(s, a),   a drawn by the actor, gradients through a, critics and alpha fixed
        temperature  - log alpha (log pi(a|s) + target_entropy),   the actor fixed

    Noise comes as columns, `noise.*` for a and `next_noise.*` for a', standard normal. The target network follows by
    `Update.sync_target(share=0.005)`. Means are weighted by `weight`. A global norm would clip all three parts together: build the
    update with `max_grad_norm=None`.

    Attributes:
        target_entropy: what the policy's entropy is held at, in nats; the usual choice is minus the numbers in an action.
        learn_temperature: else alpha stays what it is.
    """

    policy: SoftActor
    _: KW_ONLY
    target_entropy: float
    learn_temperature: bool = True

    apis: ClassVar[tuple[str, ...]] = ("loss",)
    metric_names: ClassVar[tuple[str, ...]] = ("critic_loss", "actor_loss", "entropy", "temperature", "q_value")

    def arguments(self, api: str) -> Arguments:
        return {
            "observation": columns_of(self.policy.observation),
            "action": self.policy.action_columns,
            "reward": REWARD,
            "discount": DISCOUNT,
            "next_observation": columns_of(self.policy.observation, prefix="next_"),
            "noise": noise_columns(self.policy.noise),
            "next_noise": noise_columns(self.policy.noise, prefix="next_"),
            "weight": WEIGHT,
        }

    @api
    def loss(
        self,
        scope: Scope,
        *,
        observation: Mapping[str, Array],
        action: Mapping[str, Array],
        reward: Array,
        discount: Array,
        next_observation: Mapping[str, Array],
        noise: Mapping[str, Array],
        next_noise: Mapping[str, Array],
        weight: Array,
    ) -> LossResult:
        """Shapes: all columns [B] (observations, actions and noise [B, ...]). Rows afterwards: `td_error` [B], the mean of both."""
        ops, policy, fixed, still = scope.ops, self.policy, scope.without_gradient(), scope.ops.stop_gradient
        alpha = ops.exp(policy.log_alpha(fixed))
        later, later_log_prob = policy.sample(fixed, observation=next_observation, noise=next_noise)
        after = ops.minimum(*policy.q_values(scope.target(), observation=next_observation, action=later))
        target = reward + discount * (after - alpha * later_log_prob)
        q1, q2 = policy.q_values(scope, observation=observation, action=action)
        critics = 0.5 * ((target - q1) * (target - q1) + (target - q2) * (target - q2))

        drawn, log_prob = policy.sample(scope, observation=observation, noise=noise)
        actor = alpha * log_prob - ops.minimum(*policy.q_values(fixed, observation=observation, action=drawn))
        total = critics + actor
        if self.learn_temperature:
            total = total - policy.log_alpha(scope) * (still(log_prob) + self.target_entropy)

        share = weight / ops.sum(weight)
        mean_q = still(0.5 * (q1 + q2))
        rows = [still(critics), still(actor), -still(log_prob), alpha + ops.zeros_like(mean_q), mean_q]
        return LossResult(loss=ops.dot(total, share), metrics=ops.dot(ops.stack(rows), share), rows={"td_error": target - mean_q})
