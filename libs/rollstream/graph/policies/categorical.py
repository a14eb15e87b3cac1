"""A policy over a Discrete space of any start: MLP torso, policy head, and (optionally) value head."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from functools import cached_property

from rollstream.errors import ConfigError
from rollstream.graph.components.dense import Dense
from rollstream.graph.components.features import Features
from rollstream.graph.components.mlp import Mlp
from rollstream.graph.discrete import choices, require_discrete
from rollstream.graph.distributions import categorical
from rollstream.graph.inputs import Arguments, Input, columns_of
from rollstream.graph.ops import Activation, Array
from rollstream.graph.scope import Scope, api
from rollstream.spaces import Leaf

__all__ = ["CategoricalPolicy", "Evaluation"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """What the policy thinks now of actions taken before; all [B]. `value` is None for a policy without value head."""

    log_prob: Array
    entropy: Array
    value: Array | None


@dataclass(frozen=True)
class CategoricalPolicy:
    """Actions are indices 0 to n-1; `discrete.index_to_value` makes them the environment's.

    Attributes:
        observation, action: leaves of the spaces.
        hidden: widths of the torso's layers.
        value: has a value head, and the API `values`.
        shared_torso: policy and value head read one torso (half the work); with False the value head has a torso of its own,
            so that value gradients do not move the policy's features.
    """

    observation: tuple[Leaf, ...]
    action: Leaf
    _: KW_ONLY
    hidden: tuple[int, ...] = (64, 64)
    activation: Activation = "tanh"
    value: bool = True
    shared_torso: bool = True

    def __post_init__(self) -> None:
        require_discrete(self.action, where="CategoricalPolicy.act")

    @property
    def apis(self) -> tuple[str, ...]:
        return ("act", "greedy", "evaluate", "values") if self.value else ("act", "greedy", "evaluate")

    def arguments(self, api: str) -> Arguments:
        observation = columns_of(self.observation)
        if api == "act":
            return {"observation": observation, "noise": Input(name="noise", role="noise")}
        if api == "evaluate":
            return {"observation": observation, "action": self.action_input}
        return {"observation": observation}

    @property
    def action_input(self) -> Input:
        """The column of action indices."""
        return Input(name="action", dtype="<i8", low=0, high=choices(self.action))

    @api
    def act(self, scope: Scope, *, observation: Mapping[str, Array], noise: Array) -> dict[str, Array]:
        """Draw actions. Columns `action` (index), `log_prob` and, with a value head, `value`; all [B]. `noise` [B] in [0, 1)."""
        ops = scope.ops
        log_probs, value = self._heads(scope, observation)
        action = categorical.sample(ops, log_probs, noise)
        columns = {"action": action, "log_prob": ops.pick(log_probs, action)}
        return columns if value is None else {**columns, "value": value}

    @api
    def greedy(self, scope: Scope, *, observation: Mapping[str, Array]) -> dict[str, Array]:
        """The most likely action, column `action` (index) [B]."""
        x = self._features.output(scope.child("features"), observation)
        hidden = self._torso.output(scope.child("torso"), x)
        return {"action": scope.ops.argmax(self._policy_head.output(scope.child("policy"), hidden))}

    @api
    def values(self, scope: Scope, *, observation: Mapping[str, Array]) -> dict[str, Array]:
        """Estimated discounted return from here, column `value` [B]."""
        if not self.value:
            raise ConfigError("CategoricalPolicy.values: this policy has no value head; build it with value=True")
        x = self._features.output(scope.child("features"), observation)
        return {"value": self._value(scope, x, None)}

    @api
    def evaluate(self, scope: Scope, *, observation: Mapping[str, Array], action: Array) -> Evaluation:
        """Log-probability of `action` (index [B]), entropy and value."""
        log_probs, value = self._heads(scope, observation)
        return Evaluation(
            log_prob=scope.ops.pick(log_probs, action),
            entropy=categorical.entropy(scope.ops, log_probs),
            value=value,
        )

    def _heads(self, scope: Scope, observation: Mapping[str, Array]) -> tuple[Array, Array | None]:
        """Log-probabilities [B, A] and value [B]."""
        x = self._features.output(scope.child("features"), observation)
        hidden = self._torso.output(scope.child("torso"), x)
        log_probs = scope.ops.log_softmax(self._policy_head.output(scope.child("policy"), hidden))
        return log_probs, self._value(scope, x, hidden) if self.value else None

    def _value(self, scope: Scope, x: Array, hidden: Array | None) -> Array:
        if not self.shared_torso:
            hidden = self._torso.output(scope.child("value_torso"), x)
        elif hidden is None:
            hidden = self._torso.output(scope.child("torso"), x)
        value = self._value_head.output(scope.child("value"), hidden)
        return scope.ops.reshape(value, (x.shape[0],))

    @cached_property
    def _features(self) -> Features:
        return Features(self.observation)

    @cached_property
    def _torso(self) -> Mlp:
        return Mlp(hidden=self.hidden, activation=self.activation)

    @cached_property
    def _policy_head(self) -> Dense:
        return Dense(features=choices(self.action), gain=0.01)

    @cached_property
    def _value_head(self) -> Dense:
        return Dense(features=1, gain=1.0)
