"""C51: the whole distribution of the return is learned, as probabilities of K fixed returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from rollstream.graph.inputs import Arguments, columns_of
from rollstream.graph.losses.chosen import chosen
from rollstream.graph.losses.columns import DISCOUNT, REWARD, WEIGHT
from rollstream.graph.losses.loss import LossResult
from rollstream.graph.losses.noisy import CHOICE, ONLINE, TARGET, noise_for, noisy_columns
from rollstream.graph.losses.policies import AtomValues
from rollstream.graph.ops import Array, Ops
from rollstream.graph.scope import Scope, api

__all__ = ["CategoricalQLoss", "project"]

LEAST = 1e-12
"""Probabilities below count as this in logarithms."""


@dataclass(frozen=True)
class CategoricalQLoss:
    """Bellemare et al. 2017 (arXiv 1707.06887), algorithm 1, with the online network choosing (Hessel et al. 2018, arXiv 1710.02298).

        target = projection of reward + discount Z_target(s', argmax over a of E Z(s', a));  loss = mean of weight * CE(target, Z(s, a))

    `reward` is the discounted sum of n rewards and `discount` gamma to the n, or 0 where the episode ended. Rows afterwards:
    `td_error`, the divergence KL(target, Z(s, a)), which Rainbow takes for priorities.
    """

    policy: AtomValues

    apis: ClassVar[tuple[str, ...]] = ("loss",)
    metric_names: ClassVar[tuple[str, ...]] = ("cross_entropy", "divergence", "q_value")

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
        """Shapes: all columns [B] (observations [B, ...])."""
        ops, policy, returns = scope.ops, self.policy, scope.ops.constant(self.policy.support)
        log_probs = policy.q_log_probs(scope, observation=observation, **noise_for(noisy, ONLINE))
        now = chosen(ops, log_probs, policy.action_index(scope, action))
        best = ops.argmax(policy.q_values(scope.without_gradient(), observation=next_observation, **noise_for(noisy, CHOICE)))
        after = ops.exp(
            chosen(ops, policy.q_log_probs(scope.target(), observation=next_observation, **noise_for(noisy, TARGET)), best)
        )
        target = project(ops, reward[:, None] + discount[:, None] * returns, after, self.policy.support)
        cross_entropy = -ops.sum(target * now, axis=-1)
        entropy = -ops.sum(target * ops.log(ops.clip(target, LEAST, 1.0)), axis=-1)
        still = ops.stop_gradient
        divergence = still(cross_entropy) - entropy
        share = weight * (1.0 / weight.shape[0])
        rows = ops.stack([still(cross_entropy), divergence, still(ops.sum(ops.exp(now) * returns, axis=-1))])
        return LossResult(loss=ops.dot(cross_entropy, share), metrics=ops.mean(rows, axis=-1), rows={"td_error": divergence})


def project(ops: Ops, returns: Array, probability: Array, support: npt.NDArray[np.float32]) -> Array:
    """Probabilities of any returns as probabilities of the returns in `support`, of the same mean where they lie inside it.

    Each goes to its two neighbours by a triangular kernel (algorithm 1 of the paper without its indices):

        p_j = sum over k of probability_k max(0, 1 - |clip(returns_k) - support_j| / step)

    Shapes: returns, probability [B, K], support [K] -> [B, K].
    """
    step = float(support[1]) - float(support[0])
    inside = ops.clip(returns, float(support[0]), float(support[-1]))
    distance = ops.abs((inside * (1.0 / step))[:, :, None] - ops.constant(support / np.float32(step)))  # [B, K, K]
    return ops.sum(probability[:, :, None] * ops.clip(1.0 - distance, 0.0, 1.0), axis=1)
