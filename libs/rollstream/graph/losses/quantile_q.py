"""QR-DQN: the whole distribution of the return is learned, as K quantiles."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np

from rollstream.errors import ConfigError
from rollstream.graph.inputs import Arguments, columns_of
from rollstream.graph.losses.chosen import chosen
from rollstream.graph.losses.columns import DISCOUNT, REWARD, WEIGHT
from rollstream.graph.losses.huber import huber
from rollstream.graph.losses.loss import LossResult
from rollstream.graph.losses.noisy import CHOICE, ONLINE, TARGET, noise_for, noisy_columns
from rollstream.graph.losses.policies import QuantileValues
from rollstream.graph.ops import Array, Ops
from rollstream.graph.scope import Scope, api

__all__ = ["QuantileQLoss", "quantile_huber"]


@dataclass(frozen=True)
class QuantileQLoss:
    """Dabney et al. 2018 (arXiv 1710.10044), algorithm 1, with the online network choosing.

        targets = reward + discount Z_target(s', argmax over a of E Z(s', a));  loss = mean of weight * quantile_huber(targets, Z(s, a))

    `reward` is the discounted sum of n rewards and `discount` gamma to the n, or 0 where the episode ended.

    Attributes:
        huber_delta: errors beyond it have a gradient of constant size; kappa of the paper.
    """

    policy: QuantileValues
    _: KW_ONLY
    huber_delta: float = 1.0

    apis: ClassVar[tuple[str, ...]] = ("loss",)
    metric_names: ClassVar[tuple[str, ...]] = ("td_error_abs", "q_value")

    def __post_init__(self) -> None:
        if not 0 < self.huber_delta < math.inf:
            raise ConfigError(f"QuantileQLoss needs a finite huber_delta > 0, got {self.huber_delta}")

    def arguments(self, api: str) -> Arguments:
        return {
            "observation": columns_of(self.policy.observation),
            "action": self.policy.action_columns,
            "reward": REWARD,
            "discount": DISCOUNT,
            "next_observation": columns_of(self.policy.observation, prefix="next_"),
            "weight": WEIGHT,
            **noisy_columns(self.policy),
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
        noisy: Mapping[str, Array] | None = None,
    ) -> LossResult:
        """Shapes: all columns [B] (observations [B, ...]). Rows afterwards: `td_error` [B], of the mean, with its sign."""
        ops, policy = scope.ops, self.policy
        quantiles = policy.q_quantiles(scope, observation=observation, **noise_for(noisy, ONLINE))
        now = chosen(ops, quantiles, policy.action_index(scope, action))
        best = ops.argmax(policy.q_values(scope.without_gradient(), observation=next_observation, **noise_for(noisy, CHOICE)))
        after = chosen(ops, policy.q_quantiles(scope.target(), observation=next_observation, **noise_for(noisy, TARGET)), best)
        target = reward[:, None] + discount[:, None] * after
        each = quantile_huber(ops, target, now, delta=self.huber_delta)
        q_value = ops.mean(ops.stop_gradient(now), axis=-1)
        td_error = ops.mean(target, axis=-1) - q_value
        share = weight * (1.0 / weight.shape[0])
        metrics = ops.mean(ops.stack([ops.abs(td_error), q_value]), axis=-1)
        return LossResult(loss=ops.dot(each, share), metrics=metrics, rows={"td_error": td_error})


def quantile_huber(ops: Ops, target: Array, quantiles: Array, *, delta: float) -> Array:
    """Sum over quantiles i of the mean over targets j of |tau_i - (u < 0)| huber(u) / delta, u = target_j - quantile_i (equation 10).

    tau_i = (i + 1/2) / K are the places of the quantiles.

    Shapes: target [B, J], quantiles [B, K] -> [B].
    """
    count = quantiles.shape[1]
    places = ((np.arange(count) + 0.5) / count).astype(np.float32)[:, None]
    error = target[:, None, :] - quantiles[:, :, None]  # [B, K, J]
    side = ops.abs(ops.constant(places) - ops.to_float(ops.stop_gradient(error) < 0.0))
    return ops.sum(ops.mean(side * huber(ops, error, delta=delta) * (1.0 / delta), axis=-1), axis=-1)
