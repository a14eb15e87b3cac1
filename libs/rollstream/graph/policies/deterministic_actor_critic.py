"""The policy of DDPG and TD3: a deterministic actor, noise around it, and twin critics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from functools import cached_property

from rollstream.graph.components.dense import Dense
from rollstream.graph.components.image import Channels
from rollstream.graph.components.preprocessing import Preprocessing
from rollstream.graph.components.torso import Convolutions, Torso
from rollstream.graph.distributions import deterministic
from rollstream.graph.inputs import Arguments, Input, columns_of
from rollstream.graph.ops import Activation, Array
from rollstream.graph.policies.heads import Bounds
from rollstream.graph.policies.seen import observe, observe_apis, observe_arguments, seen, seen_leaves
from rollstream.graph.policies.twin_critics import TwinCritics, TwinValues
from rollstream.graph.scope import Scope, api
from rollstream.spaces import Column, Leaf

__all__ = ["DeterministicActorCritic"]


@dataclass(frozen=True)
class DeterministicActorCritic:
    """Lillicrap et al. 2016 (arXiv 1509.02971; use `q1` alone) and Fujimoto et al. 2018 (arXiv 1802.09477). Every action leaf is
    a Box with bounds.

    Attributes:
        observation, actions: leaves of the spaces.
        hidden, activation, convolutions, channels: of the actor's and both critics' torsos; no torso is shared.
        preprocessing: in front of the torsos.
    """

    observation: tuple[Leaf, ...]
    actions: tuple[Leaf, ...]
    _: KW_ONLY
    hidden: tuple[int, ...] = (256, 256)
    activation: Activation = "relu"
    convolutions: Convolutions | None = None
    channels: Channels = "auto"
    preprocessing: Preprocessing | None = None

    def __post_init__(self) -> None:
        _ = self._scales, self._torso  # what does not fit is refused now

    @property
    def apis(self) -> tuple[str, ...]:
        return ("act", "greedy", "critics", *observe_apis(self.preprocessing))

    def arguments(self, api: str) -> Arguments:
        observation = columns_of(self.observation)
        if api == "act":
            scale = Input(name="noise_scale", role="scalar", low=0.0, high=0.5)
            return {"observation": observation, "noise": self.noise, "noise_scale": scale}
        if api == "critics":
            return {"observation": observation, "action": self.action_columns}
        if api == "observe":
            return observe_arguments(self.observation)
        return {"observation": observation}

    @property
    def noise(self) -> tuple[Input, ...]:
        """Standard normal, one input for each leaf."""
        return tuple(Input(name=_noise(leaf), shape=(leaf.size,), role="noise", noise="normal") for leaf in self.actions)

    @property
    def action_columns(self) -> tuple[Input, ...]:
        """What the critics read: actions as the environment knows them."""
        return columns_of(self.actions)

    @property
    def extra_columns(self) -> tuple[Column, ...]:
        """Rows need nothing besides."""
        return ()

    @property
    def memory(self) -> tuple[Column, ...]:
        """Nothing is remembered from step to step."""
        return ()

    @api
    def act(
        self, scope: Scope, *, observation: Mapping[str, Array], noise: Mapping[str, Array], noise_scale: Array
    ) -> dict[str, Array]:
        """The actor's actions plus noise: columns of the leaves [B, ...]. `noise_scale` [B] is its standard deviation, in
        halves of the range between the bounds."""
        return self.perturbed(scope, observation=observation, noise=noise, scale=noise_scale[:, None])

    @api
    def greedy(self, scope: Scope, *, observation: Mapping[str, Array]) -> dict[str, Array]:
        """The actor's actions, through which gradients flow: columns of the leaves [B, ...]."""
        return self._columns(scope, self._unit(scope, observation))

    @api
    def critics(self, scope: Scope, *, observation: Mapping[str, Array], action: Mapping[str, Array]) -> dict[str, Array]:
        """Columns `q1` and `q2`, each [B]."""
        q1, q2 = self.q_values(scope, observation=observation, action=action)
        return {"q1": q1, "q2": q2}

    @api
    def observe(self, scope: Scope, *, observation: Mapping[str, Array], weight: Array) -> dict[str, Array]:
        """Take rows of weight [B] (0: padding) into the statistics of a normalizer. For the learner alone."""
        observe(self.preprocessing, scope, observation, weight)
        return {}

    def perturbed(
        self,
        scope: Scope,
        *,
        observation: Mapping[str, Array],
        noise: Mapping[str, Array],
        scale: Array | float,
        limit: Array | float | None = None,
    ) -> dict[str, Array]:
        """Actions plus `scale` times `noise` (cut at `limit`: target smoothing of TD3), both in halves of the range between the
        bounds, inside the bounds: columns of the leaves [B, ...]."""
        unit = {
            leaf: deterministic.perturbed(scope.ops, x, noise[_noise(leaf)], scale=scale, limit=limit)
            for leaf, x in self._unit(scope, observation).items()
        }
        return self._columns(scope, unit)

    def q_values(self, scope: Scope, *, observation: Mapping[str, Array], action: Mapping[str, Array]) -> TwinValues:
        """Both critics, each [B]."""
        columns = seen(self.preprocessing, scope, observation)
        return self._critics.q_values(scope.child("critics"), observation=columns, action=action)

    def _unit(self, scope: Scope, observation: Mapping[str, Array]) -> dict[Leaf, Array]:
        """Actions in [-1, 1], [B, F], by leaf."""
        x = self._torso.output(scope.child("torso"), seen(self.preprocessing, scope, observation))
        policy = scope.child("policy")
        return {
            leaf: deterministic.mode(scope.ops, Dense(features=leaf.size, gain=0.01).output(policy.child(leaf.name), x))
            for leaf in self.actions
        }

    def _columns(self, scope: Scope, unit: Mapping[Leaf, Array]) -> dict[str, Array]:
        return {leaf.name: self._scales[leaf].to_environment(scope.ops, x) for leaf, x in unit.items()}

    @cached_property
    def _scales(self) -> dict[Leaf, Bounds]:
        return {leaf: Bounds(leaf) for leaf in self.actions}

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
    def _critics(self) -> TwinCritics:
        return TwinCritics(
            seen_leaves(self.preprocessing, self.observation),
            self.actions,
            hidden=self.hidden,
            activation=self.activation,
            convolutions=self.convolutions,
            channels=self.channels,
        )


def _noise(leaf: Leaf) -> str:
    return f"noise.{leaf.name}"
