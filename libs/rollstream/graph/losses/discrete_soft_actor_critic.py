"""The loss of SAC for one Discrete action: every expectation over actions is a sum, so nothing is drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

from rollstream.graph.distributions import categorical
from rollstream.graph.inputs import Arguments, columns_of
from rollstream.graph.losses.columns import DISCOUNT, REWARD, WEIGHT
from rollstream.graph.losses.loss import LossResult
from rollstream.graph.losses.policies import DiscreteSoftActor
from rollstream.graph.ops import Array
from rollstream.graph.scope import Scope, api

__all__ = ["DiscreteSoftActorCriticLoss"]


@dataclass(frozen=True)
class DiscreteSoftActorCriticLoss:
    """Christodoulou 2019 (arXiv 1910.07207), equations 10 to 12, as one sum of which each part moves parameters of its own:

        critics      (reward + discount V(s') - Q_i(s, a))² / 2,   V(s') = sum over a of pi(a|s') (min Q_target(s', a) - alpha log pi(a|s'))
        actor        sum over a of pi(a|s) (alpha log pi(a|s) - min Q_i(s, a)),   critics and alpha fixed
        temperature  log alpha (entropy of pi(.|s) - target_entropy),   the actor fixed

    The target network follows by `Update.sync_target(share=0.005)`. Means are weighted by `weight`. A global norm would clip all
    three parts together: build the update with `max_grad_norm=None`.

    Attributes:
        target_entropy: what the policy's entropy is held at, in nats; at most log A.
        learn_temperature: else alpha stays what it is.
    """

    policy: DiscreteSoftActor
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
        weight: Array,
    ) -> LossResult:
        """Shapes: all columns [B] (observations [B, ...]). Rows afterwards: `td_error` [B], the mean of both."""
        ops, policy, fixed, still = scope.ops, self.policy, scope.without_gradient(), scope.ops.stop_gradient
        alpha = ops.exp(policy.log_alpha(fixed))
        later = policy.log_probs(fixed, observation=next_observation)
        after = ops.minimum(*policy.q_values(scope.target(), observation=next_observation))
        target = reward + discount * ops.sum(ops.exp(later) * (after - alpha * later), axis=-1)
        values, taken = policy.q_values(scope, observation=observation), policy.action_index(scope, action)
        critics, errors = ops.zeros_like(target), []
        for q in values:
            errors.append(target - ops.pick(q, taken))
            critics = critics + 0.5 * errors[-1] * errors[-1]

        log_probs = policy.log_probs(scope, observation=observation)
        actor = ops.sum(ops.exp(log_probs) * (alpha * log_probs - still(ops.minimum(*values))), axis=-1)
        entropy = still(categorical.entropy(ops, log_probs))
        total = critics + actor
        if self.learn_temperature:
            total = total + policy.log_alpha(scope) * (entropy - self.target_entropy)

        share = weight / ops.sum(weight)
        td_error = still(0.5 * (errors[0] + errors[1]))
        rows = [still(critics), still(actor), entropy, alpha + ops.zeros_like(td_error), target - td_error]
        return LossResult(loss=ops.dot(total, share), metrics=ops.dot(ops.stack(rows), share), rows={"td_error": td_error})
