"""A policy that takes the action of highest estimated value, and with probability epsilon any action."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from rollstream.errors import ConfigError, SpaceError
from rollstream.graph.components.atoms import Atoms
from rollstream.graph.components.dense import Dense
from rollstream.graph.components.dueling import Dueling
from rollstream.graph.components.image import Channels
from rollstream.graph.components.noisy_dense import DEVIATION, Layer, NoisyDense, dense, drawn, split_noise
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

__all__ = ["NOISY", "Q_MAX", "Q_TAKEN", "Distribution", "QPolicy"]

Distribution: TypeAlias = Literal["c51", "quantile"]
"""How the return of an action is distributed: probabilities of fixed returns, or returns of fixed probability."""

NOISY = "noisy"
"""Noise of the weights, [B, W] standard normal, of a policy that has noisy layers."""

Q_TAKEN, Q_MAX = "q_taken", "q_max"
"""Columns of a policy that tells its values: of the action that was taken, and of the best one."""

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
        noisy: the head's layers and the last hidden one (where there are two or more) are `NoisyDense`, for exploration; `act` and
            losses draw, `greedy` and `q_values` without noise take the means. noise_deviation: at the start, see `NoisyDense`.
        tells_values: `act` also gives the columns `q_taken` and `q_max`, for whoever computes first priorities in actors.
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
    noisy: bool = False
    noise_deviation: float = DEVIATION
    tells_values: bool = False

    def __post_init__(self) -> None:
        if self.noisy and not self.hidden:
            raise ConfigError("QPolicy: noisy layers need hidden layers in front of them; give hidden at least one width")
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
                **{item.name: replace(item, role="noise") for item in self.noise},
                "epsilon": Input(name="epsilon", role="scalar", low=0.0, high=1.0),
            }
        return {"observation": observation}

    @property
    def action_columns(self) -> tuple[Input, ...]:
        """What losses read: the action as the environment calls it."""
        return columns_of(self.actions)

    @property
    def extra_columns(self) -> tuple[Column, ...]:
        """What `act` gives besides the action, and rows must hold."""
        return tuple(Column(name=name, dtype="<f4") for name in (Q_TAKEN, Q_MAX)) if self.tells_values else ()

    @cached_property
    def noise(self) -> tuple[Input, ...]:
        """What the weights are drawn with, for losses; empty without noisy layers."""
        sizes = self._noise_sizes
        return (Input(name=NOISY, shape=(sum(sizes),), noise="normal", low=-2.0, high=2.0),) if sizes else ()

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
    def act(
        self,
        scope: Scope,
        *,
        observation: Mapping[str, Array],
        noise: Array,
        epsilon: Array,
        noisy: Array | None = None,
    ) -> dict[str, Array]:
        """The action [B], and what `extra_columns` names.

        Shapes: noise [B, 2] uniform in [0, 1): whether to explore, and where to; epsilon [B], one for each environment; noisy [B, W].
        """
        ops = scope.ops
        allowed = ops.constant(np.zeros((1, choices(self.action)), np.float32))
        for mask in self.masks.of(observation).values():
            allowed = categorical.masked(ops, ops.to_float(mask) * 0.0, mask)
        values = self._action_values(scope, observation, noisy)
        index = epsilon_greedy.sample(ops, values, ops.log_softmax(allowed), noise, epsilon)
        action = {self.action.name: index_to_value(self.action, index)}
        return {**action, Q_TAKEN: ops.pick(values, index), Q_MAX: ops.max(values)} if self.tells_values else action

    @api
    def greedy(self, scope: Scope, *, observation: Mapping[str, Array]) -> dict[str, Array]:
        """The action of highest value [B]."""
        return {self.action.name: index_to_value(self.action, scope.ops.argmax(self._action_values(scope, observation, None)))}

    @api
    def q_values(self, scope: Scope, *, observation: Mapping[str, Array], noisy: Array | None = None) -> Array:
        """Estimated discounted return of each action, [B, A]."""
        return self._action_values(scope, observation, noisy)

    @api
    def q_log_probs(self, scope: Scope, *, observation: Mapping[str, Array], noisy: Array | None = None) -> Array:
        """Log-probability of each return in `support` after each action, [B, A, K]. Masks do not matter here."""
        if not isinstance(self._head, Atoms):
            raise ConfigError(f"QPolicy.q_log_probs: needs distribution='c51', this policy has {self.distribution!r}")
        x, noise = self._seen(scope, observation, noisy)
        return self._head.output(scope.child("head"), x, noise)

    @api
    def q_quantiles(self, scope: Scope, *, observation: Mapping[str, Array], noisy: Array | None = None) -> Array:
        """The quantiles (k + 1/2) / K of the return after each action, [B, A, K]. Masks do not matter here."""
        if not isinstance(self._head, Quantiles):
            raise ConfigError(f"QPolicy.q_quantiles: needs distribution='quantile', this policy has {self.distribution!r}")
        x, noise = self._seen(scope, observation, noisy)
        return self._head.output(scope.child("head"), x, noise)

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

    def _action_values(self, scope: Scope, observation: Mapping[str, Array], noisy: Array | None) -> Array:
        (x, noise), head, place = self._seen(scope, observation, noisy), self._head, scope.child("head")
        if isinstance(head, (Atoms, Quantiles)):
            values = head.values(place, x, noise)
        elif isinstance(head, Dueling):
            values = head.output(place, x, noise)
        else:
            values = drawn(head, place, x, noise)
        for mask in self.masks.of(observation).values():
            values = categorical.masked(scope.ops, values, mask)
        return values

    def _seen(self, scope: Scope, observation: Mapping[str, Array], noisy: Array | None) -> tuple[Array, Array | None]:
        """What the head sees, [B, F], and its part of the noise."""
        x = self._torso.output(scope.child("torso"), seen(self.preprocessing, scope, observation))
        if self._noisy_hidden is None:
            return x, noisy
        first = self._noise_sizes[0]
        mine, rest = split_noise(noisy, (first, sum(self._noise_sizes) - first))
        return self._noisy_hidden.output(scope.child("noisy"), x, mine), rest

    @cached_property
    def _noisy_hidden(self) -> NoisyDense | None:
        if not self.noisy or len(self.hidden) < 2:
            return None
        return NoisyDense(features=self.hidden[-1], activation=self.activation, deviation=self.noise_deviation)

    @cached_property
    def _noise_sizes(self) -> tuple[int, ...]:
        """Of each noisy layer; the hidden one comes first."""
        if not self.noisy:
            return ()
        head, width = self._head, self.hidden[-1]
        of_head = (width + choices(self.action),) if isinstance(head, Dense | NoisyDense) else head.noise_sizes(width)
        return of_head if self._noisy_hidden is None else (self.hidden[-2] + width, *of_head)

    @cached_property
    def _torso(self) -> Torso:
        return Torso(
            seen_leaves(self.preprocessing, self.observation),
            hidden=self.hidden if self._noisy_hidden is None else self.hidden[:-1],
            activation=self.activation,
            convolutions=self.convolutions,
            channels=self.channels,
        )

    @cached_property
    def _head(self) -> Layer | Dueling | Atoms | Quantiles:
        count = choices(self.action)
        noise: dict[str, Any] = {"noisy": self.noisy, "deviation": self.noise_deviation}
        if self.distribution == "c51":
            return Atoms(actions=count, atoms=self.atoms, low=self.low, high=self.high, dueling=self.dueling, **noise)
        if self.distribution == "quantile":
            return Quantiles(actions=count, quantiles=self.atoms, **noise)
        return Dueling(actions=count, **noise) if self.dueling else dense(features=count, gain=1.0, **noise)
