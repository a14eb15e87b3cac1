"""The policy of SAC: a squashed Gaussian actor, twin critics, and the temperature that weighs entropy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import NamedTuple

from rollstream.errors import ConfigError
from rollstream.graph.components.image import Channels
from rollstream.graph.components.preprocessing import Preprocessing
from rollstream.graph.components.torso import Convolutions, Torso
from rollstream.graph.initializers import Constant
from rollstream.graph.inputs import Arguments, Input, columns_of
from rollstream.graph.ops import Activation, Array
from rollstream.graph.policies.action_heads import ActionHeads
from rollstream.graph.policies.heads import Bounds
from rollstream.graph.policies.seen import observe, observe_apis, observe_arguments, seen, seen_leaves
from rollstream.graph.policies.twin_critics import TwinCritics, TwinValues
from rollstream.graph.scope import Scope, api
from rollstream.spaces import Column, Leaf

__all__ = ["Sampled", "SoftActorCritic"]


class Sampled(NamedTuple):
    """Actions by leaf name, and their log-probability [B]."""

    action: dict[str, Array]
    log_prob: Array


@dataclass(frozen=True)
class SoftActorCritic:
    """Haarnoja et al. 2018 (arXiv 1812.05905). Every action leaf is a Box with bounds.

    Attributes:
        observation, actions: leaves of the spaces.
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
        _ = [Bounds(leaf) for leaf in self.actions], self._torso  # what does not fit is refused now
        if not self.initial_temperature > 0:
            raise ConfigError(f"initial_temperature must be > 0, got {self.initial_temperature}")

    @property
    def apis(self) -> tuple[str, ...]:
        return ("act", "greedy", "critics", *observe_apis(self.preprocessing))

    def arguments(self, api: str) -> Arguments:
        observation = columns_of(self.observation)
        if api == "act":
            return {"observation": observation, "noise": self.noise}
        if api == "critics":
            return {"observation": observation, "action": self.action_columns}
        if api == "observe":
            return observe_arguments(self.observation)
        return {"observation": observation}

    @property
    def noise(self) -> tuple[Input, ...]:
        """What `act` and `sample` draw with: standard normal, one input for each leaf."""
        return self._heads.noise

    @property
    def action_columns(self) -> tuple[Input, ...]:
        """What the critics read: actions as the environment knows them."""
        return columns_of(self.actions)

    @property
    def action_size(self) -> int:
        """Numbers in one action; the usual target of the entropy is its negative."""
        return sum(leaf.size for leaf in self.actions)

    @property
    def extra_columns(self) -> tuple[Column, ...]:
        """Rows need nothing besides."""
        return ()

    @property
    def memory(self) -> tuple[Column, ...]:
        """Nothing is remembered from step to step."""
        return ()

    @api
    def act(self, scope: Scope, *, observation: Mapping[str, Array], noise: Mapping[str, Array]) -> dict[str, Array]:
        """Draw actions: columns of the leaves, and `log_prob`, [B, ...]."""
        action, log_prob = self.sample(scope, observation=observation, noise=noise)
        return {**action, "log_prob": log_prob}

    @api
    def greedy(self, scope: Scope, *, observation: Mapping[str, Array]) -> dict[str, Array]:
        """The middle of the distribution: columns of the leaves [B, ...]."""
        found = self._heads.greedy(scope.child("policy"), self._features(scope, observation), {})
        return {leaf.name: found[leaf.name] for leaf in self.actions}

    @api
    def critics(self, scope: Scope, *, observation: Mapping[str, Array], action: Mapping[str, Array]) -> dict[str, Array]:
        """Columns `q1`, `q2` and `temperature`, each [B]: what the learner believes, to look at."""
        q1, q2 = self.q_values(scope, observation=observation, action=action)
        return {"q1": q1, "q2": q2, "temperature": scope.ops.exp(self.log_alpha(scope)) + scope.ops.zeros_like(q1)}

    @api
    def observe(self, scope: Scope, *, observation: Mapping[str, Array], weight: Array) -> dict[str, Array]:
        """Take rows of weight [B] (0: padding) into the statistics of a normalizer. For the learner alone."""
        observe(self.preprocessing, scope, observation, weight)
        return {}

    def sample(self, scope: Scope, *, observation: Mapping[str, Array], noise: Mapping[str, Array]) -> Sampled:
        """Actions [B, ...] through which gradients flow, and their log-probability [B], a density over (-1, 1)."""
        drawn = self._heads.act(scope.child("policy"), self._features(scope, observation), noise, {})
        return Sampled(action={leaf.name: drawn.columns[leaf.name] for leaf in self.actions}, log_prob=drawn.log_prob)

    def q_values(self, scope: Scope, *, observation: Mapping[str, Array], action: Mapping[str, Array]) -> TwinValues:
        """Both critics, each [B]."""
        columns = seen(self.preprocessing, scope, observation)
        return self._critics.q_values(scope.child("critics"), observation=columns, action=action)

    def log_alpha(self, scope: Scope) -> Array:
        """Logarithm of the temperature, a parameter of shape [1]."""
        return scope.parameter("log_alpha", (1,), Constant(value=math.log(self.initial_temperature)))

    def _features(self, scope: Scope, observation: Mapping[str, Array]) -> Array:
        return self._torso.output(scope.child("torso"), seen(self.preprocessing, scope, observation))

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
    def _heads(self) -> ActionHeads:
        return ActionHeads(self.actions, bounds="squash", state_dependent_std=True)

    @cached_property
    def _critics(self) -> TwinCritics:
        return TwinCritics(
            seen_leaves(self.preprocessing, self.observation),
            self.actions,
            hidden=self.hidden,
            activation=self.activation,
            convolutions=self.convolutions,
            channels=self.channels,
        )
