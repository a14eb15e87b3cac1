"""What all operators are: one node at work, a synchronous generator of parcels over its inputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from rollstream.flow.ledger import Parcel
from rollstream.flow.meter import Meter
from rollstream.flow.node import Node
from rollstream.flow.running import Running

__all__ = ["Operator"]


class Operator(Protocol):
    """A node at work. It passes on items and nothing else; when there is none, it waits where it is.

    Operators implement `parcels` and whatever else they need; the rest stands here.
    """

    node: Node
    inputs: tuple[Operator, ...]
    running: Running
    meter: Meter

    def __init__(self, node: Node, inputs: tuple[Operator, ...], running: Running) -> None:
        self.node = node
        self.inputs = inputs
        self.running = running
        self.meter = running.meters[node.name]
        self.prepare()

    def prepare(self) -> None:
        """Set up what the operator needs; called once, before anything runs."""

    def parcels(self) -> Iterator[Parcel]:
        """Pull and pass on until the input ends or the flow stops. Called once."""
        ...

    def ready(self) -> bool:
        """Whether a pull would not have to wait for something outside this thread. Asked in inline mode only."""
        return all(before.ready() for before in self.inputs)

    def state(self) -> dict[str, Any]:
        """What a restart must not forget; empty when there is nothing."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up what `state` gave."""

    def held_env_steps(self) -> int:
        """Environment steps in the buffer that is part of `state`."""
        return 0

    def wake(self) -> None:
        """The flow is closing: whoever waits inside this operator shall return."""

    def abandon(self) -> None:
        """Nobody will pull this operator any more, though the flow goes on."""
        for before in self.inputs:
            before.abandon()

    def close(self) -> None:
        """Join threads and give back what is held. Called once, after `wake` of all operators."""

    def passed(self, parcel: Parcel) -> Parcel:
        """`parcel`, counted as one that came out of this node."""
        meter = self.meter
        meter.items += 1
        meter.env_steps += getattr(parcel.item, "env_steps", 0)
        return parcel
