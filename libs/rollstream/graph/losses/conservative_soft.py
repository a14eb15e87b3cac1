"""The loss of CQL for Box actions: that of SAC, and a term that holds down the values of actions which nobody took."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Protocol

from rollstream.errors import ConfigError
from rollstream.graph.inputs import Arguments, Input
from rollstream.graph.losses.loss import LossResult
from rollstream.graph.losses.policies import SoftActor
from rollstream.graph.losses.soft_actor_critic import SoftActorCriticLoss
from rollstream.graph.ops import Array, Ops
from rollstream.graph.policies.heads.bounds import Bounds
from rollstream.graph.scope import Scope, api
from rollstream.spaces import Leaf

__all__ = ["ConservativeSoftLoss"]

POLICY_NOISE, UNIFORM_NOISE = "policy_noise.", "uniform_noise."


class _BoxActor(SoftActor, Protocol):
    """Attributes:
    actions: leaves, all Boxes with bounds.
    """

    @property
    def actions(self) -> tuple[Leaf, ...]: ...


@dataclass(frozen=True)
class ConservativeSoftLoss:
    """CQL(H) of Kumar et al. 2020 (arXiv 2006.04779), equation 4, with the integral over actions by importance sampling (appendix F):

        SAC + weight * sum over both critics of  log mean over a of exp(Q_i(s, a) - log p(a))  -  Q_i(s, a taken)

    where half of the a are drawn uniformly and half by the policy, and p is the density of each over [-1, 1]. Noise for these
    comes as columns `uniform_noise.*`, uniform in [0, 1), and `policy_noise.*`, standard normal, [B, samples, F]. Only the critics
    are moved by the term.

    Attributes:
        samples: actions of each kind.
    """

    soft: SoftActorCriticLoss
    _: KW_ONLY
    weight: float = 1.0
    samples: int = 4

    def __post_init__(self) -> None:
        if not self.weight >= 0:
            raise ConfigError(f"weight of ConservativeSoftLoss must be >= 0, got {self.weight}; 0 is plain SAC")
        if self.samples < 1:
            raise ConfigError(f"samples of ConservativeSoftLoss must be >= 1, got {self.samples}")

    @property
    def policy(self) -> Any:
        """The policy of the loss that it adds to."""
        return self.soft.policy

    @property
    def apis(self) -> tuple[str, ...]:
        return ("loss",)

    @property
    def metric_names(self) -> tuple[str, ...]:
        return (*self.soft.metric_names, "conservative_loss")

    def arguments(self, api: str) -> Arguments:
        return {
            **self.soft.arguments(api),
            "policy_noise": tuple(
                replace(item, name=POLICY_NOISE + item.name, shape=(self.samples, *item.shape), role="column")
                for item in self.policy.noise
            ),
            "uniform_noise": tuple(
                Input(name=UNIFORM_NOISE + leaf.name, shape=(self.samples, leaf.size), low=0.0, high=1.0)
                for leaf in self.policy.actions
            ),
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
        policy_noise: Mapping[str, Array],
        uniform_noise: Mapping[str, Array],
    ) -> LossResult:
        """Shapes: all columns [B] (observations, actions and noise [B, ...])."""
        ops, policy = scope.ops, self.policy
        soft = self.soft.loss(
            scope,
            observation=observation,
            action=action,
            reward=reward,
            discount=discount,
            next_observation=next_observation,
            noise=noise,
            next_noise=next_noise,
            weight=weight,
        )
        rows, many = weight.shape[0], {name: ops.concatenate([x] * self.samples, axis=0) for name, x in observation.items()}
        drawn, log_prob = policy.sample(
            scope.without_gradient(),
            observation=many,
            noise={name.removeprefix(POLICY_NOISE): self._lined_up(ops, x) for name, x in policy_noise.items()},
        )
        spread = {
            leaf.name: Bounds(leaf).to_environment(ops, 2.0 * self._lined_up(ops, uniform_noise[UNIFORM_NOISE + leaf.name]) - 1.0)
            for leaf in policy.actions
        }
        uniform_log_prob = -math.log(2.0) * sum(leaf.size for leaf in policy.actions)
        penalty = ops.zeros_like(weight)
        taken = policy.q_values(scope, observation=observation, action=action)
        by_policy = policy.q_values(scope, observation=many, action=drawn)
        by_chance = policy.q_values(scope, observation=many, action=spread)
        for q, q_policy, q_chance in zip(taken, by_policy, by_chance, strict=True):
            values = ops.concatenate(
                [
                    ops.transpose(ops.reshape(q_policy - log_prob, (self.samples, rows)), (1, 0)),
                    ops.transpose(ops.reshape(q_chance - uniform_log_prob, (self.samples, rows)), (1, 0)),
                ]
            )
            penalty = penalty + _log_mean_exp(ops, values) - q
        share = weight / ops.sum(weight)
        added = ops.dot(penalty, share)
        told = ops.reshape(ops.stop_gradient(added), (1,))
        return LossResult(loss=soft.loss + self.weight * added, metrics=ops.concatenate([soft.metrics, told]), rows=soft.rows)

    def _lined_up(self, ops: Ops, noise: Array) -> Array:
        """[B, samples, F] -> [samples * B, F], all rows of one sample after those of the one before."""
        return ops.reshape(ops.transpose(noise, (1, 0, 2)), (self.samples * noise.shape[0], noise.shape[2]))


def _log_mean_exp(ops: Ops, x: Array) -> Array:
    """log of the mean of exp(x) over the last axis, without overflow: [B, K] -> [B]."""
    highest = ops.stop_gradient(ops.max(x, keepdims=True))
    mean = ops.mean(ops.exp(x - highest), axis=-1)
    return ops.log(mean) + ops.reshape(highest, (x.shape[0],))
