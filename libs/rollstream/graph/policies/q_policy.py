"""A policy that takes the action of highest estimated value, and with probability epsilon any action."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from rollstream.errors import ConfigError, SpaceError
from rollstream.graph.components.atoms import Atoms
from rollstream.graph.components.dense import Dense
from rollstream.graph.components.dueling import Dueling
from rollstream.graph.components.image import Channels
from rollstream.graph.components.preprocessing import Preprocessing
from rollstream.graph.components.quantiles import Quantiles
from rollstream.graph.components.torso import Convolutions, Torso
from rollstream.graph.discrete import choices, index_to_value, require_discrete, value_to_index
from rollstream.graph.distributions import categorical, epsilon_greedy
from rollstream.graph.inputs import Arguments, Input, columns_of
from rollstream.graph.ops import Activation, Array
from rollstream.graph.policies.masks import Masks
from rollstream.graph.policies.seen import observe, observe_apis, observe_arguments, seen, seen_leaves
from rollstream.graph.scope import Scope, api
from rollstream.spaces import Column, Leaf

__all__ = ["Distribution", "QPolicy"]

Distribution: TypeAlias = Literal["c51", "quantile"]
"""How the return of an action is distributed: probabilities of fixed returns, or returns of fixed probability."""

DISTRIBUTED: Mapping[Distribution | None, tuple[str, ...]] = {None: (), "c51": ("q_log_probs",), "quantile": ("q_quantiles",)}
"""The API that gives the distribution."""


@dataclass(frozen=True)
class QPolicy:
    """Action values by a torso and a plain or dueling head. Actions are the environment's own values, `q_values` are by index.

    Attributes:
        observation, actions: leaves of the spaces; one Discrete action. An observation leaf called `action_mask` is a mask: a
            forbidden action is never taken, and its value is far below all others.
        hidden, activation, convolutions, channels: of the torso.
        dueling: head of Wang et al. 2016 in place of one dense layer.
        distribution: the head gives the distribution of the return, of which action values are the means.
        atoms, low, high: of the distribution: how many numbers an action has; and for c51, the range of returns.
        preprocessing: in front of the torso.
    """

    observation: tuple[Leaf, ...]
    actions: tuple[Leaf, ...]
    _: KW_ONLY
    hidden: tuple[int, ...] = (64, 64)
    activation: Activation = "relu"
    convolutions: Convolutions | None = None
    channels: Channels = "auto"
    dueling: bool = False
    distribution: Distribution | None = None
    atoms: int = 51
    low: float = -10.0
    high: float = 10.0
    preprocessing: Preprocessing | None = None

    def __post_init__(self) -> None:
        if len(self.actions) != 1:
            names = ", ".join(leaf.name for leaf in self.actions)
            raise SpaceError(
                f"action: QPolicy chooses one discrete action, but the environment asks for {len(self.actions)} ({names}); "
                "use ppo, or wrap the environment so that it takes one Discrete action"
            )
        require_discrete(self.action, where="QPolicy.act")
        if self.distribution == "quantile" and self.dueling:
            raise ConfigError("QPolicy: dueling quantiles are not there; use dueling=False, or distribution='c51'")
        _ = self.masks, self._torso  # what does not fit is refused now

    @property
    def action(self) -> Leaf:
        """The one action leaf."""
        return self.actions[0]

    @property
    def apis(self) -> tuple[str, ...]:
        return ("act", "greedy", "q_values", *DISTRIBUTED[self.distribution], *observe_apis(self.preprocessing))

    def arguments(self, api: str) -> Arguments:
        observation = columns_of(self.observation)
        if api == "observe":
            return observe_arguments(self.observation)
        if api == "act":
            return {
                "observation": observation,
                "noise": Input(name="noise", shape=(2,), role="noise"),
                "epsilon": Input(name="epsilon", role="scalar", low=0.0, high=1.0),
            }
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
    def act(self, scope: Scope, *, observation: Mapping[str, Array], noise: Array, epsilon: Array) -> dict[str, Array]:
        """The action [B].

        Shapes: noise [B, 2] uniform in [0, 1): whether to explore, and where to; epsilon [B], one for each environment.
        """
        ops = scope.ops
        allowed = ops.constant(np.zeros((1, choices(self.action)), np.float32))
        for mask in self.masks.of(observation).values():
            allowed = categorical.masked(ops, ops.to_float(mask) * 0.0, mask)
        index = epsilon_greedy.sample(ops, self._action_values(scope, observation), ops.log_softmax(allowed), noise, epsilon)
        return {self.action.name: index_to_value(self.action, index)}

    @api
    def greedy(self, scope: Scope, *, observation: Mapping[str, Array]) -> dict[str, Array]:
        """The action of highest value [B]."""
        return {self.action.name: index_to_value(self.action, scope.ops.argmax(self._action_values(scope, observation)))}

    @api
    def q_values(self, scope: Scope, *, observation: Mapping[str, Array]) -> Array:
        """Estimated discounted return of each action, [B, A]."""
        return self._action_values(scope, observation)

    @api
    def q_log_probs(self, scope: Scope, *, observation: Mapping[str, Array]) -> Array:
        """Log-probability of each return in `support` after each action, [B, A, K]. Masks do not matter here."""
        if not isinstance(self._head, Atoms):
            raise ConfigError(f"QPolicy.q_log_probs: needs distribution='c51', this policy has {self.distribution!r}")
        return self._head.output(scope.child("head"), self._seen(scope, observation))

    @api
    def q_quantiles(self, scope: Scope, *, observation: Mapping[str, Array]) -> Array:
        """The quantiles (k + 1/2) / K of the return after each action, [B, A, K]. Masks do not matter here."""
        if not isinstance(self._head, Quantiles):
            raise ConfigError(f"QPolicy.q_quantiles: needs distribution='quantile', this policy has {self.distribution!r}")
        return self._head.output(scope.child("head"), self._seen(scope, observation))

    @property
    def support(self) -> npt.NDArray[np.float32]:
        """The returns that c51 gives probabilities to, in equal steps, [K]."""
        if not isinstance(self._head, Atoms):
            raise ConfigError(f"QPolicy.support: needs distribution='c51', this policy has {self.distribution!r}")
        return self._head.support

    @api
    def observe(self, scope: Scope, *, observation: Mapping[str, Array], weight: Array) -> dict[str, Array]:
        """Take rows of weight [B] (0: padding) into the statistics of a normalizer. For the learner alone."""
        observe(self.preprocessing, scope, observation, weight)
        return {}

    def _action_values(self, scope: Scope, observation: Mapping[str, Array]) -> Array:
        x, head = self._seen(scope, observation), scope.child("head")
        values = self._head.values(head, x) if isinstance(self._head, (Atoms, Quantiles)) else self._head.output(head, x)
        for mask in self.masks.of(observation).values():
            values = categorical.masked(scope.ops, values, mask)
        return values

    def _seen(self, scope: Scope, observation: Mapping[str, Array]) -> Array:
        """What the torso says, [B, F]."""
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
    def _head(self) -> Dense | Dueling | Atoms | Quantiles:
        count = choices(self.action)
        if self.distribution == "c51":
            return Atoms(actions=count, atoms=self.atoms, low=self.low, high=self.high, dueling=self.dueling)
        if self.distribution == "quantile":
            return Quantiles(actions=count, quantiles=self.atoms)
        return Dueling(actions=count) if self.dueling else Dense(features=count, gain=1.0)
