"""Action values that depend on what was seen before: what R2D2 optimizes.

observation t, recurrent t, first t -> torso with memory -> plain or dueling head -> action t, recurrent t + 1
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from functools import cached_property

import numpy as np

from rollstream.errors import SpaceError
from rollstream.graph.components.dense import Dense
from rollstream.graph.components.dueling import Dueling
from rollstream.graph.components.image import Channels
from rollstream.graph.components.preprocessing import Preprocessing
from rollstream.graph.components.recurrent import Remembered
from rollstream.graph.components.torso import Convolutions, Recurrent, Torso
from rollstream.graph.discrete import choices, index_to_value, require_discrete, value_to_index
from rollstream.graph.distributions import categorical, epsilon_greedy
from rollstream.graph.inputs import Arguments, Input, columns_of
from rollstream.graph.ops import Activation, Array
from rollstream.graph.policies.masks import Masks
from rollstream.graph.policies.memory import PREFIX, after, flattened, memory_columns, memory_inputs, unflattened
from rollstream.graph.policies.q_policy import Q_MAX, Q_TAKEN
from rollstream.graph.policies.seen import observe, observe_apis, observe_arguments, seen, seen_leaves
from rollstream.graph.scope import Scope, api
from rollstream.spaces import Column, Leaf

__all__ = ["RecurrentQPolicy"]

TORSO = "torso"
EXAMPLE_STEPS = 3
"""Steps of the sequences with which `q_sequence` is built when nothing else says how many."""


@dataclass(frozen=True)
class RecurrentQPolicy:
    """`QPolicy` with a memory. Actions are the environment's own values, action values are by index.

    Attributes:
        observation, actions: leaves of the spaces; one Discrete action. An observation leaf called `action_mask` is a mask.
        hidden, activation, convolutions, channels, recurrent, recurrent_units: of the torso.
        dueling: head of Wang et al. 2016 in place of one dense layer.
        preprocessing: in front of the torso.
    """

    observation: tuple[Leaf, ...]
    actions: tuple[Leaf, ...]
    _: KW_ONLY
    hidden: tuple[int, ...] = (64,)
    activation: Activation = "relu"
    convolutions: Convolutions | None = None
    channels: Channels = "auto"
    recurrent: Recurrent = "lstm"
    recurrent_units: int = 64
    dueling: bool = False
    preprocessing: Preprocessing | None = None

    def __post_init__(self) -> None:
        if len(self.actions) != 1:
            names = ", ".join(leaf.name for leaf in self.actions)
            raise SpaceError(
                f"action: RecurrentQPolicy chooses one discrete action, but the environment asks for {len(self.actions)} ({names}); "
                "use ppo with recurrent, or wrap the environment so that it takes one Discrete action"
            )
        require_discrete(self.action, where="RecurrentQPolicy.act")
        _ = self.masks, self._torso  # what does not fit is refused now

    @property
    def action(self) -> Leaf:
        """The one action leaf."""
        return self.actions[0]

    @property
    def apis(self) -> tuple[str, ...]:
        return ("act", "greedy", "q_sequence", *observe_apis(self.preprocessing))

    def arguments(self, api: str) -> Arguments:
        if api == "observe":
            return observe_arguments(self.observation)
        if api == "q_sequence":
            return self.sequence_arguments(steps=EXAMPLE_STEPS)
        drawing: Arguments = {
            "noise": Input(name="noise", shape=(2,), role="noise"),
            "epsilon": Input(name="epsilon", role="scalar", low=0.0, high=1.0),
        }
        return {
            "observation": columns_of(self.observation),
            **(drawing if api == "act" else {}),
            **memory_inputs(self._memory_sizes),
        }

    def sequence_arguments(self, *, steps: int) -> Arguments:
        """What `q_sequence` takes, for rows of `steps` steps each."""
        observation = unflattened(columns_of(self.observation), steps=steps)
        return {"observation": observation, **memory_inputs(self._memory_sizes, steps=steps)}

    @property
    def action_columns(self) -> tuple[Input, ...]:
        """What losses read: the action as the environment calls it."""
        return columns_of(self.actions)

    @property
    def memory(self) -> tuple[Column, ...]:
        """What each environment remembers from step to step; `act` takes it and gives the new one under the same names."""
        return memory_columns(self._memory_sizes)

    @property
    def extra_columns(self) -> tuple[Column, ...]:
        """What `act` gives besides the action, and rows must hold: values for first priorities, and `recurrent.*` before the step."""
        return (*(Column(name=name, dtype="<f4") for name in (Q_TAKEN, Q_MAX)), *self.memory)

    @cached_property
    def masks(self) -> Masks:
        """Which actions are allowed."""
        return Masks(self.observation, self.actions)

    def action_index(self, scope: Scope, action: Mapping[str, Array]) -> Array:
        """Which action value belongs to each action, int64, of the shape of the action."""
        return value_to_index(scope.ops, self.action, action[self.action.name])

    @api
    def act(
        self,
        scope: Scope,
        *,
        observation: Mapping[str, Array],
        noise: Array,
        epsilon: Array,
        recurrent: Mapping[str, Array],
        first: Array,
    ) -> dict[str, Array]:
        """The action [B], `q_taken` and `q_max` [B], and what is remembered now.

        Shapes: noise [B, 2] uniform in [0, 1): whether to explore, and where to; epsilon [B], one for each environment; recurrent.*
        [B, S], from the step before; first [B], 1 where an episode begins.
        """
        ops = scope.ops
        values, state = self._step(scope, observation, recurrent, first)
        allowed = ops.constant(np.zeros((1, choices(self.action)), np.float32))
        for mask in self.masks.of(observation).values():
            allowed = categorical.masked(ops, ops.to_float(mask) * 0.0, mask)
        index = epsilon_greedy.sample(ops, values, ops.log_softmax(allowed), noise, epsilon)
        action = {self.action.name: index_to_value(self.action, index)}
        return {**action, Q_TAKEN: ops.pick(values, index), Q_MAX: ops.max(values), PREFIX + TORSO: state}

    @api
    def greedy(
        self, scope: Scope, *, observation: Mapping[str, Array], recurrent: Mapping[str, Array], first: Array
    ) -> dict[str, Array]:
        """The action of highest value [B], and what is remembered now."""
        values, state = self._step(scope, observation, recurrent, first)
        return {self.action.name: index_to_value(self.action, scope.ops.argmax(values)), PREFIX + TORSO: state}

    @api
    def q_sequence(
        self, scope: Scope, *, observation: Mapping[str, Array], recurrent: Mapping[str, Array], first: Array
    ) -> Remembered:
        """Action values of T steps, [B, T, A], and the state after the last one [B, S].

        Shapes: columns [B, T, ...], first [B, T] (1 where an episode begins), recurrent.* [B, S] before the first step.
        """
        ops = scope.ops
        flat = flattened(ops, observation, first)
        columns = {
            name: ops.reshape(x, (*first.shape, *x.shape[1:])) for name, x in seen(self.preprocessing, scope, flat).items()
        }
        x, state = self._torso.sequence(scope.child(TORSO), columns, first, recurrent[PREFIX + TORSO])
        values = self._values(scope, ops.reshape(x, (first.shape[0] * first.shape[1], x.shape[-1])), flat)
        return Remembered(output=ops.reshape(values, (*first.shape, choices(self.action))), state=state)

    @api
    def observe(self, scope: Scope, *, observation: Mapping[str, Array], weight: Array) -> dict[str, Array]:
        """Take rows of weight [B] (0: padding) into the statistics of a normalizer. For the learner alone."""
        observe(self.preprocessing, scope, observation, weight)
        return {}

    def _step(self, scope: Scope, observation: Mapping[str, Array], recurrent: Mapping[str, Array], first: Array) -> Remembered:
        before = after(recurrent, first)[PREFIX + TORSO]
        x, state = self._torso.step(scope.child(TORSO), seen(self.preprocessing, scope, observation), before)
        return Remembered(output=self._values(scope, x, observation), state=state)

    def _values(self, scope: Scope, x: Array, observation: Mapping[str, Array]) -> Array:
        values = self._head.output(scope.child("head"), x)
        for mask in self.masks.of(observation).values():
            values = categorical.masked(scope.ops, values, mask)
        return values

    @cached_property
    def _memory_sizes(self) -> dict[str, int]:
        return {TORSO: self._torso.state_size}

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
    def _head(self) -> Dense | Dueling:
        count = choices(self.action)
        return Dueling(actions=count) if self.dueling else Dense(features=count, gain=1.0)
