"""The policy of SAC for one Discrete action: probabilities of all choices, twin critics that value all of them, a temperature."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from functools import cached_property

from rollstream.errors import ConfigError, SpaceError
from rollstream.graph.components.dense import Dense
from rollstream.graph.components.image import Channels
from rollstream.graph.components.preprocessing import Preprocessing
from rollstream.graph.components.torso import Convolutions, Torso
from rollstream.graph.discrete import choices, index_to_value, require_discrete, value_to_index
from rollstream.graph.distributions import categorical
from rollstream.graph.initializers import Constant
from rollstream.graph.inputs import Arguments, Input, columns_of
from rollstream.graph.ops import Activation, Array
from rollstream.graph.policies.masks import Masks
from rollstream.graph.policies.seen import observe, observe_apis, observe_arguments, seen, seen_leaves
from rollstream.graph.policies.twin_critics import TwinValues
from rollstream.graph.scope import Scope, api
from rollstream.spaces import Column, Leaf

__all__ = ["DiscreteSoftActorCritic"]


@dataclass(frozen=True)
class DiscreteSoftActorCritic:
    """Christodoulou 2019 (arXiv 1910.07207). An observation leaf called `action_mask` is a mask: what it forbids has probability 0.

    Attributes:
        observation, actions: leaves of the spaces; one Discrete action.
        hidden, activation, convolutions, channels: of the actor's and both critics' torsos; no torso is shared.
        initial_temperature: alpha at the start.
        preprocessing: in front of the torsos.
    """

    observation: tuple[Leaf, ...]
    actions: tuple[Leaf, ...]
    _: KW_ONLY
    hidden: tuple[int, ...] = (256, 256)
    activation: Activation = "relu"
    convolutions: Convolutions | None = None
    channels: Channels = "auto"
    initial_temperature: float = 1.0
    preprocessing: Preprocessing | None = None

    def __post_init__(self) -> None:
        if len(self.actions) != 1:
            names = ", ".join(leaf.name for leaf in self.actions)
            raise SpaceError(
                f"action: DiscreteSoftActorCritic chooses one discrete action, but the environment asks for {len(self.actions)} "
                f"({names}); use ppo, or wrap the environment so that it takes one Discrete action"
            )
        require_discrete(self.action, where="DiscreteSoftActorCritic.act")
        _ = self.masks, self._torso  # what does not fit is refused now
        if not self.initial_temperature > 0:
            raise ConfigError(f"initial_temperature of DiscreteSoftActorCritic must be > 0, got {self.initial_temperature}")

    @property
    def action(self) -> Leaf:
        """The one action leaf."""
        return self.actions[0]

    @property
    def apis(self) -> tuple[str, ...]:
        return ("act", "greedy", "critics", *observe_apis(self.preprocessing))

    def arguments(self, api: str) -> Arguments:
        observation = columns_of(self.observation)
        if api == "act":
            return {"observation": observation, "noise": Input(name="noise", role="noise")}
        if api == "critics":
            return {"observation": observation, "action": self.action_columns}
        if api == "observe":
            return observe_arguments(self.observation)
        return {"observation": observation}

    @property
    def action_columns(self) -> tuple[Input, ...]:
        """What losses read: the action as the environment calls it."""
        return columns_of(self.actions)

    @property
    def extra_columns(self) -> tuple[Column, ...]:
        """Rows need nothing besides."""
        return ()

    @property
    def memory(self) -> tuple[Column, ...]:
        """Nothing is remembered from step to step."""
        return ()

    @cached_property
    def masks(self) -> Masks:
        """Which actions are allowed."""
        return Masks(self.observation, self.actions)

    def action_index(self, scope: Scope, action: Mapping[str, Array]) -> Array:
        """Which of `q_values` belongs to each action, int64 [B]."""
        return value_to_index(scope.ops, self.action, action[self.action.name])

    @api
    def act(self, scope: Scope, *, observation: Mapping[str, Array], noise: Array) -> dict[str, Array]:
        """Draw actions: column of the leaf, and `log_prob`, [B]. Shapes: noise [B], uniform in [0, 1)."""
        log_probs = self.log_probs(scope, observation=observation)
        index = categorical.sample(scope.ops, log_probs, noise)
        chosen = categorical.log_prob(scope.ops, log_probs, index)
        return {self.action.name: index_to_value(self.action, index), "log_prob": chosen}

    @api
    def greedy(self, scope: Scope, *, observation: Mapping[str, Array]) -> dict[str, Array]:
        """The most probable action [B]."""
        index = categorical.mode(scope.ops, self.log_probs(scope, observation=observation))
        return {self.action.name: index_to_value(self.action, index)}

    @api
    def critics(self, scope: Scope, *, observation: Mapping[str, Array], action: Mapping[str, Array]) -> dict[str, Array]:
        """Columns `q1`, `q2` and `temperature`, each [B]: what the learner believes, to look at."""
        taken = self.action_index(scope, action)
        q1, q2 = (scope.ops.pick(q, taken) for q in self.q_values(scope, observation=observation))
        return {"q1": q1, "q2": q2, "temperature": scope.ops.exp(self.log_alpha(scope)) + scope.ops.zeros_like(q1)}

    @api
    def observe(self, scope: Scope, *, observation: Mapping[str, Array], weight: Array) -> dict[str, Array]:
        """Take rows of weight [B] (0: padding) into the statistics of a normalizer. For the learner alone."""
        observe(self.preprocessing, scope, observation, weight)
        return {}

    def log_probs(self, scope: Scope, *, observation: Mapping[str, Array]) -> Array:
        """Log-probability of each choice, [B, A]."""
        x = self._torso.output(scope.child("torso"), seen(self.preprocessing, scope, observation))
        logits = self._logits.output(scope.child("policy"), x)
        for mask in self.masks.of(observation).values():
            logits = categorical.masked(scope.ops, logits, mask)
        return scope.ops.log_softmax(logits)

    def q_values(self, scope: Scope, *, observation: Mapping[str, Array]) -> TwinValues:
        """Both critics' values of every choice, each [B, A]. Masks do not matter here: what they forbid has probability 0."""
        columns, critics = seen(self.preprocessing, scope, observation), scope.child("critics")
        return TwinValues(q1=self._q(critics.child("q1"), columns), q2=self._q(critics.child("q2"), columns))

    def log_alpha(self, scope: Scope) -> Array:
        """Logarithm of the temperature, a parameter of shape [1]."""
        return scope.parameter("log_alpha", (1,), Constant(value=math.log(self.initial_temperature)))

    def _q(self, scope: Scope, columns: Mapping[str, Array]) -> Array:
        return self._values.output(scope.child("value"), self._torso.output(scope.child("torso"), columns))

    @cached_property
    def _torso(self) -> Torso:
        return Torso(
            seen_leaves(self.preprocessing, self.observation),
            hidden=self.hidden,
            activation=self.activation,
            convolutions=self.convolutions,
            channels=self.channels,
        )

    @cached_property
    def _logits(self) -> Dense:
        return Dense(features=choices(self.action), gain=0.01)

    @cached_property
    def _values(self) -> Dense:
        return Dense(features=choices(self.action), gain=1.0)
