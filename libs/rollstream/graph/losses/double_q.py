"""The double-Q n-step loss of DQN, with importance weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

from rollstream.errors import ConfigError
from rollstream.graph.inputs import Arguments, columns_of
from rollstream.graph.losses.columns import DISCOUNT, REWARD, WEIGHT
from rollstream.graph.losses.conservative import conservative_penalty
from rollstream.graph.losses.huber import huber
from rollstream.graph.losses.loss import LossResult
from rollstream.graph.losses.noisy import CHOICE, ONLINE, TARGET, noise_for, noisy_columns
from rollstream.graph.losses.policies import ActionValues
from rollstream.graph.losses.rescaling import compressed, expanded
from rollstream.graph.ops import Array
from rollstream.graph.scope import Scope, api

__all__ = ["DoubleQLoss"]


@dataclass(frozen=True)
class DoubleQLoss:
    """Van Hasselt et al. 2016 (arXiv 1509.06461), equation 4: the online network chooses, the target network values.

    td_error = reward + discount * Q_target(s', argmax over a of Q(s', a)) - Q(s, a);  loss = mean of weight * huber(td_error).

    `reward` is the discounted sum of n rewards and `discount` gamma to the n, or 0 where the episode ended. The
    weights are those of prioritized replay (Schaul et al. 2016, arXiv 1511.05952, §3.4). The mean is over all rows,
    so the weights do scale the step.

    Attributes:
        huber_delta: errors beyond it have a gradient of constant size.
        rescale: the network learns h(Q) of `rescaling.compressed`: targets are h(reward + discount h^-1(q)), as in R2D2 (Kapturowski
            et al. 2019, section 2.3).
        conservative: weight of `conservative_penalty`, for learning from recorded data alone (CQL); 0: none.
    """

    policy: ActionValues
    _: KW_ONLY
    huber_delta: float = 1.0
    rescale: bool = False
    conservative: float = 0.0

    apis: ClassVar[tuple[str, ...]] = ("loss",)
    metric_names: ClassVar[tuple[str, ...]] = ("td_error_abs", "q_value")

    def __post_init__(self) -> None:
        if not self.huber_delta > 0:
            raise ConfigError(f"huber_delta must be > 0, got {self.huber_delta}; for squared errors use a large one, e.g. 1e9")
        if not self.conservative >= 0:
            raise ConfigError(f"conservative must be >= 0, got {self.conservative}; 0 is plain Q-learning")

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
        """Shapes: all columns [B] (observations [B, ...]). Rows afterwards: `td_error` [B], with its sign."""
        ops = scope.ops
        taken = self.policy.action_index(scope, action)
        q_now = self.policy.q_values(scope, observation=observation, **noise_for(noisy, ONLINE))
        q_tm1 = ops.pick(q_now, taken)
        best = ops.argmax(
            self.policy.q_values(scope.without_gradient(), observation=next_observation, **noise_for(noisy, CHOICE))
        )
        q_t = ops.pick(self.policy.q_values(scope.target(), observation=next_observation, **noise_for(noisy, TARGET)), best)
        target = reward + discount * (expanded(ops, q_t) if self.rescale else q_t)
        td_error = (compressed(ops, target) if self.rescale else target) - q_tm1
        each = huber(ops, td_error, delta=self.huber_delta)
        if self.conservative:
            each = each + self.conservative * conservative_penalty(ops, q_now, taken)
        share = weight * (1.0 / weight.shape[0])
        error = ops.stop_gradient(td_error)
        rows = ops.stack([ops.abs(error), ops.stop_gradient(q_tm1)])
        return LossResult(
            loss=ops.dot(each, share), metrics=ops.sum(rows, axis=-1) * (1.0 / weight.shape[0]), rows={"td_error": error}
        )
