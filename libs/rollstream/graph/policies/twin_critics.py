"""Two estimates of an action's value, of which losses believe the lower one (Fujimoto et al. 2018, arXiv 1802.09477, section 4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import NamedTuple

from rollstream.graph.components.dense import Dense
from rollstream.graph.components.image import Channels
from rollstream.graph.components.torso import Convolutions, Torso
from rollstream.graph.ops import Activation, Array
from rollstream.graph.policies.heads import Bounds
from rollstream.graph.scope import Scope
from rollstream.spaces import Leaf

__all__ = ["TwinCritics", "TwinValues"]


class TwinValues(NamedTuple):
    """Two estimates of the discounted return after an action, each [B]."""

    q1: Array
    q2: Array


@dataclass(frozen=True)
class TwinCritics:
    """Two networks of equal form with parameters of their own; they read the observation and the action in [-1, 1].

    Attributes:
        observation, actions: leaves; actions are Boxes with bounds.
        hidden, activation, convolutions, channels: of each torso.
    """

    observation: tuple[Leaf, ...]
    actions: tuple[Leaf, ...]
    _: KW_ONLY
    hidden: tuple[int, ...] = (256, 256)
    activation: Activation = "relu"
    convolutions: Convolutions | None = None
    channels: Channels = "auto"

    def q_values(self, scope: Scope, *, observation: Mapping[str, Array], action: Mapping[str, Array]) -> TwinValues:
        """Columns [B, ...]; actions in the environment's values. Gradients flow into both."""
        unit = {leaf.name: scale.from_environment(scope.ops, action[leaf.name]) for leaf, scale in self._scales.items()}
        columns = {**observation, **unit}
        return TwinValues(q1=self._q(scope.child("q1"), columns), q2=self._q(scope.child("q2"), columns))

    def _q(self, scope: Scope, columns: Mapping[str, Array]) -> Array:
        x = self._torso.output(scope.child("torso"), columns)
        return scope.ops.reshape(self._head.output(scope.child("value"), x), (x.shape[0],))

    @cached_property
    def _scales(self) -> dict[Leaf, Bounds]:
        return {leaf: Bounds(leaf) for leaf in self.actions}

    @cached_property
    def _torso(self) -> Torso:
        entries = tuple(
            Leaf(name=leaf.name, kind="box", dtype="<f4", shape=(leaf.size,), low=(-1.0,) * leaf.size, high=(1.0,) * leaf.size)
            for leaf in self.actions
        )
        return Torso(
            (*self.observation, *entries),
            hidden=self.hidden,
            activation=self.activation,
            convolutions=self.convolutions,
            channels=self.channels,
        )

    @cached_property
    def _head(self) -> Dense:
        return Dense(features=1, gain=1.0)
