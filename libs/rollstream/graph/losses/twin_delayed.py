"""The loss of TD3, and of DDPG: a deterministic actor climbs the values of its critics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

from rollstream.errors import ConfigError
from rollstream.graph.inputs import Arguments, columns_of
from rollstream.graph.losses.columns import DISCOUNT, REWARD, WEIGHT, coefficient, noise_columns
from rollstream.graph.losses.loss import LossResult
from rollstream.graph.losses.policies import DeterministicActor
from rollstream.graph.ops import Array
from rollstream.graph.scope import Scope, api

__all__ = ["TwinDelayedLoss"]


@dataclass(frozen=True)
class TwinDelayedLoss:
    """Fujimoto et al. 2018 (arXiv 1802.09477), algorithm 1, as one sum of which each part moves parameters of its own:

        critics  (reward + discount min Q_target(s', a') - Q_i(s, a))² / 2,   a' = target actor + cut noise, inside the bounds
        actor    - actor_weight Q_1(s, actor(s)),   critics fixed

    `actor_weight` is 1 in updates that move the actor and 0 in those between (the delay); an optimizer with momentum moves
    the actor on in these too. Noise comes as columns `next_noise.*`, standard normal. The target networks follow by
    `Update.sync_target(share=0.005)`. Means are weighted by `weight`. A global norm would clip both parts together: build the
    update with `max_grad_norm=None`. DDPG (Lillicrap et al. 2016, arXiv 1509.02971) is
    `twin=False, target_noise=0.0` with an actor weight of 1.

    Attributes:
        twin: believe the lower of two critics; else there is only the first.
        target_noise, target_noise_limit: of a', in halves of the range between the bounds.
    """

    policy: DeterministicActor
    _: KW_ONLY
    twin: bool = True
    target_noise: float = 0.2
    target_noise_limit: float = 0.5

    apis: ClassVar[tuple[str, ...]] = ("loss",)
    metric_names: ClassVar[tuple[str, ...]] = ("critic_loss", "actor_loss", "q_value")

    def __post_init__(self) -> None:
        if self.target_noise < 0 or self.target_noise_limit < 0:
            raise ConfigError(
                f"target_noise and target_noise_limit must be >= 0, got {self.target_noise} and {self.target_noise_limit}"
            )

    def arguments(self, api: str) -> Arguments:
        return {
            "observation": columns_of(self.policy.observation),
            "action": self.policy.action_columns,
            "reward": REWARD,
            "discount": DISCOUNT,
            "next_observation": columns_of(self.policy.observation, prefix="next_"),
            "next_noise": noise_columns(self.policy.noise, prefix="next_"),
            "weight": WEIGHT,
            "actor_weight": coefficient("actor_weight"),
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
        next_noise: Mapping[str, Array],
        weight: Array,
        actor_weight: Array | float,
    ) -> LossResult:
        """Shapes: all columns [B] (observations, actions and noise [B, ...]). Rows afterwards: `td_error` [B], the critics' mean."""
        ops, policy, far = scope.ops, self.policy, scope.target()
        later = policy.perturbed(
            far, observation=next_observation, noise=next_noise, scale=self.target_noise, limit=self.target_noise_limit
        )
        target = reward + discount * self._lowest(scope, policy.q_values(far, observation=next_observation, action=later))
        found = policy.q_values(scope, observation=observation, action=action)[: 2 if self.twin else 1]
        critics, errors = ops.zeros_like(target), [target - q for q in found]
        for error in errors:
            critics = critics + 0.5 * error * error
        chosen = policy.greedy(scope, observation=observation)
        actor = -policy.q_values(scope.without_gradient(), observation=observation, action=chosen)[0]

        share = weight / ops.sum(weight)
        still = ops.stop_gradient
        rows = ops.stack([still(critics), still(actor), still(found[0])])
        td_error = still(ops.mean(ops.stack(errors), axis=0))
        return LossResult(
            loss=ops.dot(critics + actor_weight * actor, share), metrics=ops.dot(rows, share), rows={"td_error": td_error}
        )

    def _lowest(self, scope: Scope, values: tuple[Array, Array]) -> Array:
        return scope.ops.minimum(*values) if self.twin else values[0]
