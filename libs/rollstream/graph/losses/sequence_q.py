"""The double-Q n-step loss over sequences of a policy that remembers (R2D2).

recurrent ─▶ burn-in ─▶ state ─▶ step 0 ... step L-1, row L          columns: [B, burn_in + L + 1]
             (no gradient)       learned from    only bootstrapped from
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

from rollstream.errors import ConfigError
from rollstream.graph.inputs import Arguments, Input
from rollstream.graph.losses.columns import DISCOUNT, REWARD, WEIGHT
from rollstream.graph.losses.huber import huber
from rollstream.graph.losses.loss import LossResult
from rollstream.graph.losses.policies import SequenceValues
from rollstream.graph.losses.rescaling import compressed, expanded
from rollstream.graph.losses.sequences import over_time
from rollstream.graph.ops import Array
from rollstream.graph.policies.memory import unflattened
from rollstream.graph.scope import Scope, api

__all__ = ["SequenceQLoss"]

VALID = Input(name="valid", low=0.0, high=1.0)
"""Of each step: 1 where there is one, 0 behind the end of a short sequence."""


@dataclass(frozen=True)
class SequenceQLoss:
    """Kapturowski et al. 2019 (Recurrent Experience Replay in Distributed Reinforcement Learning), section 2.3.

        td_error_t = h(reward_t + discount_t h^-1(Q_target(o_k, argmax over a of Q(o_k, a)))) - Q(o_t, a_t),   k = bootstrap_t
        loss = mean over sequences of weight * (mean over steps of huber(td_error))
        priority = eta max |td_error| + (1 - eta) mean |td_error|

    `reward` is the discounted sum of n rewards (fewer at the end of the sequence), `discount` gamma to as many, or 0 where the
    episode ended. Both networks unroll from the stored state through the burn-in steps, from which nothing is learned.

    Attributes:
        burn_in, steps: of a sequence [L = steps].
        rescale: values are on the scale h of `rescaling.compressed`.
        eta: of the priority.
        huber_delta: errors beyond it have a gradient of constant size.
    """

    policy: SequenceValues
    _: KW_ONLY
    steps: int
    burn_in: int = 0
    rescale: bool = True
    eta: float = 0.9
    huber_delta: float = math.inf

    apis: ClassVar[tuple[str, ...]] = ("loss",)
    metric_names: ClassVar[tuple[str, ...]] = ("td_error_abs", "q_value")

    def __post_init__(self) -> None:
        if self.steps < 1 or self.burn_in < 0:
            raise ConfigError(f"SequenceQLoss: steps must be >= 1 and burn_in >= 0, got {self.steps} and {self.burn_in}")

    def arguments(self, api: str) -> Arguments:
        def each(item: Input) -> Input:
            return over_time(item, steps=self.steps)

        return {
            **self.policy.sequence_arguments(steps=self.burn_in + self.steps + 1),
            "action": unflattened(self.policy.action_columns, steps=self.steps),
            "reward": each(REWARD),
            "discount": each(DISCOUNT),
            "bootstrap": each(Input(name="bootstrap", dtype="<i8", low=0.0, high=self.steps + 1.0)),
            "valid": each(VALID),
            "weight": WEIGHT,
        }

    @api
    def loss(
        self,
        scope: Scope,
        *,
        observation: Mapping[str, Array],
        recurrent: Mapping[str, Array],
        first: Array,
        action: Mapping[str, Array],
        reward: Array,
        discount: Array,
        bootstrap: Array,
        valid: Array,
        weight: Array,
    ) -> LossResult:
        """Shapes: observation and first [B, burn_in + L + 1, ...], recurrent.* [B, S] before the first of them; action, reward, discount,
        bootstrap (which of the L + 1 rows) and valid [B, L]; weight [B]. Rows afterwards: `td_error` [B], the priority."""
        ops = scope.ops
        target, still = scope.target(), ops.stop_gradient
        values = self._values(scope, scope.without_gradient(), observation, recurrent, first)
        far = self._values(target, target, observation, recurrent, first)
        ahead = still(ops.pick(far, ops.argmax(still(values))))  # [B, L + 1]
        reached = ops.pick(ahead[:, None, :] + 0.0 * reward[:, :, None], bootstrap)
        wanted = reward + discount * (expanded(ops, reached) if self.rescale else reached)
        q_tm1 = ops.pick(values[:, : self.steps], self.policy.action_index(scope, action))
        td_error = (compressed(ops, wanted) if self.rescale else wanted) - q_tm1
        each = ops.sum(huber(ops, td_error, delta=self.huber_delta) * valid, axis=-1) * (1.0 / self.steps)
        share = weight * (1.0 / weight.shape[0])
        size = ops.abs(still(td_error)) * valid
        count = ops.maximum(ops.sum(valid, axis=-1), ops.ones_like(weight))
        mean = ops.sum(size, axis=-1) / count
        priority = self.eta * ops.max(size) + (1.0 - self.eta) * mean
        rows = ops.stack([mean, ops.sum(still(q_tm1) * valid, axis=-1) / count])
        return LossResult(loss=ops.dot(each, share), metrics=ops.mean(rows, axis=-1), rows={"td_error": priority})

    def _values(
        self, scope: Scope, warm: Scope, observation: Mapping[str, Array], recurrent: Mapping[str, Array], first: Array
    ) -> Array:
        """[B, L + 1, A], after the burn-in in the scope `warm`."""
        if self.burn_in:
            early = {name: column[:, : self.burn_in] for name, column in observation.items()}
            state = self.policy.q_sequence(warm, observation=early, recurrent=recurrent, first=first[:, : self.burn_in]).state
            recurrent = dict.fromkeys(recurrent, scope.ops.stop_gradient(state))
        core = {name: column[:, self.burn_in :] for name, column in observation.items()}
        values: Array = self.policy.q_sequence(
            scope, observation=core, recurrent=recurrent, first=first[:, self.burn_in :]
        ).output
        return values
