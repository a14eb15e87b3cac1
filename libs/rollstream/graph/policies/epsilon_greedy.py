"""A policy that takes the action of highest estimated value, and with probability epsilon any action."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from rollstream.graph.components.dense import Dense
from rollstream.graph.components.dueling import Dueling
from rollstream.graph.components.features import Features
from rollstream.graph.components.mlp import Mlp
from rollstream.graph.discrete import choices, require_discrete
from rollstream.graph.inputs import Arguments, Input, columns_of
from rollstream.graph.ops import Activation, Array
from rollstream.graph.scope import Scope, api
from rollstream.spaces import Leaf

__all__ = ["QPolicy"]


@dataclass(frozen=True)
class QPolicy:
    """Action values by an MLP torso and a plain or dueling head; actions are indices 0 to n-1.

    Attributes:
        observation, action: leaves of the spaces.
        hidden: widths of the torso's layers.
        dueling: head of Wang et al. 2016 in place of one dense layer.
    """

    observation: tuple[Leaf, ...]
    action: Leaf
    _: KW_ONLY
    hidden: tuple[int, ...] = (64, 64)
    activation: Activation = "relu"
    dueling: bool = False

    def __post_init__(self) -> None:
        require_discrete(self.action, where="QPolicy.act")

    @property
    def apis(self) -> tuple[str, ...]:
        return ("act", "greedy", "q_values")

    def arguments(self, api: str) -> Arguments:
        observation = columns_of(self.observation)
        if api == "act":
            return {
                "observation": observation,
                "noise": Input(name="noise", shape=(2,), role="noise"),
                "epsilon": Input(name="epsilon", role="scalar", low=0.0, high=1.0),
            }
        return {"observation": observation}

    @property
    def action_input(self) -> Input:
        """The column of action indices."""
        return Input(name="action", dtype="<i8", low=0, high=choices(self.action))

    @api
    def act(self, scope: Scope, *, observation: Mapping[str, Array], noise: Array, epsilon: Array) -> dict[str, Array]:
        """Column `action` (index) [B].

        Shapes: noise [B, 2] uniform in [0, 1): whether to explore, and where to; epsilon [B], one for each environment.
        """
        ops = scope.ops
        greedy = ops.argmax(self._action_values(scope, observation))
        random = ops.sum(ops.constant(self._shares) <= noise[:, 1:], axis=-1)
        return {"action": ops.where(noise[:, 0] < epsilon, random, greedy)}

    @api
    def greedy(self, scope: Scope, *, observation: Mapping[str, Array]) -> dict[str, Array]:
        """The action of highest value, column `action` (index) [B]."""
        return {"action": scope.ops.argmax(self._action_values(scope, observation))}

    @api
    def q_values(self, scope: Scope, *, observation: Mapping[str, Array]) -> Array:
        """Estimated discounted return of each action, [B, A]."""
        return self._action_values(scope, observation)

    def _action_values(self, scope: Scope, observation: Mapping[str, Array]) -> Array:
        x = self._features.output(scope.child("features"), observation)
        hidden = self._torso.output(scope.child("torso"), x)
        return self._head.output(scope.child("head"), hidden)

    @cached_property
    def _shares(self) -> npt.NDArray[np.float32]:
        """Where each action but the first begins when [0, 1) is divided equally among all."""
        count = choices(self.action)
        return (np.arange(1, count) / count).astype(np.float32)

    @cached_property
    def _features(self) -> Features:
        return Features(self.observation)

    @cached_property
    def _torso(self) -> Mlp:
        return Mlp(hidden=self.hidden, activation=self.activation)

    @cached_property
    def _head(self) -> Dense | Dueling:
        count = choices(self.action)
        return Dueling(actions=count) if self.dueling else Dense(features=count, gain=1.0)
