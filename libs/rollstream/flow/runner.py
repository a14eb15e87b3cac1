"""The runner: a flow at work in the learner. Pull it, and everything moves; close it, and everything has ended."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any

from rollstream.errors import CheckpointError, ConfigError, DeadlineExceeded, FlowError
from rollstream.flow.description import Description
from rollstream.flow.ledger import Parcel
from rollstream.flow.node import Node
from rollstream.flow.operators import OPERATORS, Operator
from rollstream.flow.rates import NodeWork, Rates
from rollstream.flow.running import Running
from rollstream.flow.sides import LearnerSide, Owner
from rollstream.flow.stream import Stream
from rollstream.flow.view import FlowView, view_of

__all__ = ["Runner"]


class Runner:
    """Iterates over the items of a flow, usually reports.

    >>> with Runner(flow(config, actors, learner), side) as runner:                       # doctest: +SKIP
    ...     for report in runner: ...

    Args:
        flow: what the flow function returned, or the description made of it.
        side: the learner's process.
        inline: everything in the calling thread: no threads, deterministic.
        owner: is asked while the flow waits; for what cannot wait for the next item.
    """

    def __init__(
        self, flow: Stream[Any] | Description, side: LearnerSide, *, inline: bool = False, owner: Owner | None = None
    ) -> None:
        self.description = flow if isinstance(flow, Description) else Description(flow)
        self._running = Running(side, inline=inline, nodes=self.description.nodes, owner=owner)
        self._operators: dict[str, Operator] = {}
        for node in self.description.nodes:
            if node.where == "learner":
                self._operators[node.name] = self._operator(node)
        self._root = self._operators[self.description.root.name]
        self._finish = self._running.ledger.finish
        self._chain: Iterator[Parcel] | None = None
        self._closed = False
        self._rates = Rates(side.clock, self._running.meters)

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __iter__(self) -> Runner:
        return self

    def __next__(self) -> Any:
        """The next item.

        Raises:
            FlowError: a step failed, here, in a thread, or in an inline actor; `__cause__` is the user's exception, unchanged.
        """
        if self._closed:
            raise StopIteration
        if self._chain is None:
            self._chain = self._start()
        try:
            parcel = next(self._chain)
        except StopIteration:
            self.close()
            raise
        except Exception as error:
            self._close_after(error)
            if isinstance(error, FlowError):
                raise error.with_traceback(None) from error.__cause__
            raise
        self._finish(parcel)
        return parcel.item

    @property
    def in_flight_env_steps(self) -> int:
        """Environment steps that entered the flow and are not trained, stored or dropped yet."""
        return self._running.ledger.in_flight_env_steps

    def quiet(self) -> AbstractContextManager[None]:
        """No thread of the flow is inside a step as long as the context lasts: the moment for a consistent cut.

        Call it between two items, or as the owner while the flow waits, from the thread that pulls.
        """
        return self._running.quiet()

    def state(self) -> dict[str, Any]:
        """Buffers, schedules and positions of every node by name: JSON-able values and arrays. To be called within `quiet`."""
        return {
            "nodes": {name: {"kind": operator.node.kind, "state": operator.state()} for name, operator in self._operators.items()}
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up a saved state, before the first item and after the counters were restored.

        Raises:
            CheckpointError: the flow is not the one that was saved; names the nodes that differ.
        """
        if self._chain is not None:
            raise ConfigError("restore the state of a flow before its first item is pulled")
        saved: Mapping[str, Any] = state["nodes"]
        self._require_same_nodes(saved)
        for name, operator in self._operators.items():
            if saved[name]["state"]:
                operator.restore(saved[name]["state"])

    def describe(self, *, actors: Mapping[str, NodeWork] | None = None) -> FlowView:
        """Nodes and edges with rates, depth, who waits for what, and the bottleneck.

        Args:
            actors: what the actors told of their nodes (`rollstream.flow.rates.together`).
        """
        return view_of(
            self.description,
            self._running.meters,
            self._rates,
            actors=actors,
            in_flight_env_steps=self.in_flight_env_steps,
        )

    def close(self) -> None:
        """End the chain, join every thread, give back what steps hold. Items under way stay unacknowledged and come again."""
        if self._closed:
            return
        self._closed = True
        self._running.closing = True
        for operator in self._operators.values():
            operator.wake()
        for operator in self._operators.values():
            operator.close()
        self._chain = None

    def _operator(self, node: Node) -> Operator:
        inputs = tuple(self._operators[before.name] for before in node.inputs if before.where == "learner")
        return OPERATORS[node.kind](node, inputs, self._running)

    def _start(self) -> Iterator[Parcel]:
        held = sum(operator.held_env_steps() for operator in self._operators.values())
        self._running.ledger.resume(held_env_steps=held)
        return iter(self._root.parcels())

    def _close_after(self, error: Exception) -> None:
        try:
            self.close()
        except DeadlineExceeded as stuck:
            error.add_note(str(stuck))

    def _require_same_nodes(self, saved: Mapping[str, Any]) -> None:
        differences = [f"it has no {name!r}" for name in saved if name not in self._operators]
        differences += [f"{name!r} is new" for name in self._operators if name not in saved]
        for name, operator in self._operators.items():
            if name in saved and saved[name]["kind"] != operator.node.kind:
                differences.append(f"{name!r} was a {saved[name]['kind']} and is a {operator.node.kind}")
        if differences:
            raise CheckpointError(
                f"the flow differs from the one that was saved: {'; '.join(differences)}. "
                "Resume with the release and settings that wrote the checkpoint, or start fresh"
            )
