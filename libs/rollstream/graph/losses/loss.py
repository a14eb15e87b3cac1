"""What every loss is and gives back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from rollstream.graph.declare import Component
from rollstream.graph.ops import Array

__all__ = ["Loss", "LossResult", "Network"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LossResult:
    """Attributes:
    loss: the number to minimize, [].
    metrics: [K], the numbers that `metric_names` of the loss names; no gradient flows from them.
    rows: what is known of each row afterwards, by column name, [B]; no gradient flows from them.
    """

    loss: Array
    metrics: Array
    rows: Mapping[str, Array]


class Network(Component, Protocol):
    """What an update moves: a policy."""


class Loss(Component, Protocol):
    """A component with one API, `loss`, whose parameters are those of its policy, under the same paths."""

    @property
    def policy(self) -> Any:
        """The `Network` that is optimized; its layout is that of the flat vector."""
        ...

    @property
    def metric_names(self) -> tuple[str, ...]: ...

    @property
    def loss(self) -> Any:
        """`loss(scope, **arguments) -> LossResult`."""
        ...
