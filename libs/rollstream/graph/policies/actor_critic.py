"""A policy over any action space, and (optionally) the value of the state: what PPO, IMPALA and their like optimize.

observation -> preprocessing -> torso -> heads (one for each leaf of the action space) -> action, log_prob
                                  \\---> value head, on this torso or on one of its own -> value
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any

from rollstream.errors import ConfigError
from rollstream.graph.components.dense import Dense
from rollstream.graph.components.image import Channels
from rollstream.graph.components.preprocessing import Preprocessing
from rollstream.graph.components.torso import Convolutions, Recurrent, Torso
from rollstream.graph.inputs import Arguments, Input, columns_of
from rollstream.graph.ops import Activation, Array
from rollstream.graph.policies.action_heads import ActionHeads
from rollstream.graph.policies.evaluation import Evaluation
from rollstream.graph.policies.heads import BoxBounds
from rollstream.graph.policies.masks import Masks
from rollstream.graph.policies.memory import after, flattened, memory_columns, memory_inputs, unflattened
from rollstream.graph.policies.seen import observe, observe_apis, observe_arguments, seen, seen_leaves
from rollstream.graph.scope import Scope, api
from rollstream.spaces import Column, Leaf

__all__ = ["ActorCriticPolicy"]

TORSO, VALUE_TORSO = "torso", "value_torso"
EXAMPLE_STEPS = 3
"""Steps of the sequences with which `evaluate_sequence` is built when nothing else says how many."""


@dataclass(frozen=True)
class ActorCriticPolicy:
    """Actions are the environment's own values: Discrete counted from its start, Box within its bounds.

    Attributes:
        observation, actions: leaves of the spaces. An observation leaf called `action_mask` is a mask, see `masks`.
        hidden, activation, convolutions, channels, recurrent, recurrent_units: of the torso.
        value: has a value head, and the API `values`.
        shared_torso: policy and value head read one torso (half the work); with False the value head has a torso of its own,
            so that value gradients do not move the policy's features.
        bounds, state_dependent_std: of Box actions, see `heads.gaussian`.
        autoregressive: with several leaves, later ones see what earlier ones chose.
        preprocessing: in front of the torsos.
        network: a component of yours in place of the torsos, e.g. a `TorchModule`: `output` takes the leaves of the observation as
            numbers [B, ...] in their order, and gives [B, F]. It remembers nothing.
    """

    observation: tuple[Leaf, ...]
    actions: tuple[Leaf, ...]
    _: KW_ONLY
    hidden: tuple[int, ...] = (64, 64)
    activation: Activation = "tanh"
    convolutions: Convolutions | None = None
    channels: Channels = "auto"
    recurrent: Recurrent | None = None
    recurrent_units: int = 64
    value: bool = True
    shared_torso: bool = True
    bounds: BoxBounds = "clip"
    state_dependent_std: bool = False
    autoregressive: bool = False
    preprocessing: Preprocessing | None = None
    network: Any = None

    def __post_init__(self) -> None:
        if self.network is not None and self.recurrent is not None:
            raise ConfigError("ActorCriticPolicy: a network of yours remembers nothing; leave out recurrent, or network")
        _ = self.masks, self.action_columns, self._torso  # what does not fit is refused now

    @property
    def acting_mode(self) -> str:
        """In which mode it acts: `auto`, or the one that its `network` needs."""
        return str(getattr(self.network, "acting_mode", "auto"))

    @property
    def apis(self) -> tuple[str, ...]:
        own = ("act", "greedy", "evaluate_sequence" if self.recurrent else "evaluate")
        return (*own, *(("values",) if self.value else ()), *observe_apis(self.preprocessing))

    def arguments(self, api: str) -> Arguments:
        observation = columns_of(self.observation)
        if api == "observe":
            return observe_arguments(self.observation)
        if api == "evaluate":
            return {"observation": observation, "action": self.action_columns}
        if api == "evaluate_sequence":
            return self.sequence_arguments(steps=EXAMPLE_STEPS)
        noise: Arguments = {"noise": self._heads.noise} if api == "act" else {}
        return {"observation": observation, **noise, **memory_inputs(self._memory_sizes)}

    def sequence_arguments(self, *, steps: int) -> Arguments:
        """What `evaluate_sequence` takes, for rows of `steps` steps each."""
        return {
            "observation": unflattened(columns_of(self.observation), steps=steps),
            "action": unflattened(self.action_columns, steps=steps),
            **memory_inputs(self._memory_sizes, steps=steps),
        }

    @property
    def action_columns(self) -> tuple[Input, ...]:
        """What `evaluate` reads: the action leaves, or `latent.<leaf>` where a Box is squashed or clipped."""
        return self._heads.action_columns

    @property
    def extra_columns(self) -> tuple[Column, ...]:
        """What `act` gives besides the actions, and rows must hold; `recurrent.*` as it was before the step."""
        own = [Column(name="log_prob", dtype="<f4"), *([Column(name="value", dtype="<f4")] if self.value else [])]
        return (*own, *self._heads.extra_columns, *memory_columns(self._memory_sizes))

    @property
    def memory(self) -> tuple[Column, ...]:
        """What each environment remembers from step to step; `act` takes it and gives the new one under the same names."""
        return memory_columns(self._memory_sizes)

    @cached_property
    def masks(self) -> Masks:
        """Which actions are allowed."""
        return Masks(self.observation, self.actions)

    @api
    def act(
        self,
        scope: Scope,
        *,
        observation: Mapping[str, Array],
        noise: Mapping[str, Array],
        recurrent: Mapping[str, Array] | None = None,
        first: Array | None = None,
    ) -> dict[str, Array]:
        """Draw actions: columns of the leaves, latent ones, `log_prob` and, with a value head, `value`, all [B, ...].

        A recurrent policy takes `recurrent.*` [B, S], what it remembers from the step before, and `first` [B], 1 where an
        episode begins; it gives what it remembers now.
        """
        memory = after(recurrent, first)
        x, value = self._see(scope, observation, memory)
        drawn = self._heads.act(scope.child("policy"), x, noise, self.masks.of(observation))
        columns = {**drawn.columns, "log_prob": drawn.log_prob}
        return {**columns, **memory} if value is None else {**columns, "value": value, **memory}

    @api
    def greedy(
        self,
        scope: Scope,
        *,
        observation: Mapping[str, Array],
        recurrent: Mapping[str, Array] | None = None,
        first: Array | None = None,
    ) -> dict[str, Array]:
        """The most probable actions; columns as in `act`, without `log_prob` and `value`."""
        memory = after(recurrent, first)
        columns = seen(self.preprocessing, scope, observation)
        x = self._torso_output(scope, TORSO, columns, memory)
        if self._value_torso_remembers:
            self._torso_output(scope, VALUE_TORSO, columns, memory)
        return {**self._heads.greedy(scope.child("policy"), x, self.masks.of(observation)), **memory}

    @api
    def values(
        self,
        scope: Scope,
        *,
        observation: Mapping[str, Array],
        recurrent: Mapping[str, Array] | None = None,
        first: Array | None = None,
    ) -> dict[str, Array]:
        """Estimated discounted return from here, column `value` [B]."""
        if not self.value:
            raise ConfigError("ActorCriticPolicy.values: this policy has no value head; build it with value=True")
        torso = TORSO if self.shared_torso else VALUE_TORSO
        x = self._torso_output(scope, torso, seen(self.preprocessing, scope, observation), after(recurrent, first))
        return {"value": self._value_of(scope, x)}

    @api
    def evaluate(self, scope: Scope, *, observation: Mapping[str, Array], action: Mapping[str, Array]) -> Evaluation:
        """Log-probability of actions (by the names of `action_columns`, [B, ...]), entropy and value.

        Raises:
            ConfigError: the policy is recurrent.
        """
        if self.recurrent is not None:
            raise ConfigError("ActorCriticPolicy.evaluate: a recurrent policy judges whole sequences; use evaluate_sequence")
        x, value = self._see(scope, observation, {})
        judged = self._heads.evaluate(scope.child("policy"), x, action, self.masks.of(observation))
        return Evaluation(log_prob=judged.log_prob, entropy=judged.entropy, value=value)

    @api
    def evaluate_sequence(
        self,
        scope: Scope,
        *,
        observation: Mapping[str, Array],
        action: Mapping[str, Array],
        recurrent: Mapping[str, Array],
        first: Array,
    ) -> Evaluation:
        """As `evaluate`, for T steps each: columns [B, T, ...], `first` [B, T], `recurrent.*` [B, S] before the first step."""
        flat, actions = flattened(scope.ops, observation, first), flattened(scope.ops, action, first)
        columns = seen(self.preprocessing, scope, flat)
        x = self._sequence(scope, TORSO, columns, recurrent, first)
        judged = self._heads.evaluate(scope.child("policy"), x, actions, self.masks.of(flat))
        value = None
        if self.value:
            own = x if self.shared_torso else self._sequence(scope, VALUE_TORSO, columns, recurrent, first)
            value = scope.ops.reshape(self._value_of(scope, own), first.shape)
        log_prob, entropy = (scope.ops.reshape(each, first.shape) for each in (judged.log_prob, judged.entropy))
        return Evaluation(log_prob=log_prob, entropy=entropy, value=value)

    @api
    def observe(self, scope: Scope, *, observation: Mapping[str, Array], weight: Array) -> dict[str, Array]:
        """Take rows of weight [B] (0: padding) into the statistics of a normalizer. For the learner alone."""
        observe(self.preprocessing, scope, observation, weight)
        return {}

    def _see(self, scope: Scope, observation: Mapping[str, Array], memory: dict[str, Array]) -> tuple[Array, Array | None]:
        """What the policy's torso says [B, F], and the value [B]; `memory` becomes the new one."""
        columns = seen(self.preprocessing, scope, observation)
        x = self._torso_output(scope, TORSO, columns, memory)
        if not self.value:
            return x, None
        own = x if self.shared_torso else self._torso_output(scope, VALUE_TORSO, columns, memory)
        return x, self._value_of(scope, own)

    def _torso_output(self, scope: Scope, name: str, columns: Mapping[str, Array], memory: dict[str, Array]) -> Array:
        if self.network is not None:
            x: Array = self.network.output(scope.child(name), *columns.values())
            return x
        if self.recurrent is None:
            return self._torso.output(scope.child(name), columns)
        column = f"recurrent.{name}"
        x, memory[column] = self._torso.step(scope.child(name), columns, memory[column])
        return x

    def _sequence(
        self, scope: Scope, name: str, columns: Mapping[str, Array], recurrent: Mapping[str, Array], first: Array
    ) -> Array:
        """[B * T, F]."""
        steps = {key: scope.ops.reshape(x, (*first.shape, *x.shape[1:])) for key, x in columns.items()}
        x, _ = self._torso.sequence(scope.child(name), steps, first, recurrent[f"recurrent.{name}"])
        return scope.ops.reshape(x, (first.shape[0] * first.shape[1], x.shape[-1]))

    def _value_of(self, scope: Scope, x: Array) -> Array:
        return scope.ops.reshape(self._value_head.output(scope.child("value"), x), (x.shape[0],))

    @property
    def _value_torso_remembers(self) -> bool:
        return self.value and not self.shared_torso and self.recurrent is not None

    @cached_property
    def _memory_sizes(self) -> dict[str, int]:
        """By torso, numbers that it remembers for each environment."""
        if self.recurrent is None:
            return {}
        names = (TORSO, VALUE_TORSO) if self._value_torso_remembers else (TORSO,)
        return dict.fromkeys(names, self._torso.state_size)

    @cached_property
    def _torso(self) -> Torso:
        return Torso(
            seen_leaves(self.preprocessing, self.observation),
            hidden=self.hidden,
            activation=self.activation,
            convolutions=self.convolutions,
            channels=self.channels,
            recurrent=self.recurrent,
            recurrent_units=self.recurrent_units,
        )

    @cached_property
    def _heads(self) -> ActionHeads:
        return ActionHeads(
            self.actions,
            bounds=self.bounds,
            state_dependent_std=self.state_dependent_std,
            autoregressive=self.autoregressive,
        )

    @cached_property
    def _value_head(self) -> Dense:
        return Dense(features=1, gain=1.0)
