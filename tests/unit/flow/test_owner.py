"""Who pulls a flow may act while it waits, whatever it waits for: nothing may come any more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from rollstream.flow import Runner, Stream, TableHandle, duplicate, union, update
from rollstream.flow.toy import ToyLearner, ToyTable

REPLAY = TableHandle(name="replay")


@dataclass
class StopsTheFlow:
    """An owner that has one thing to do, once the flow waits: look at it, and end it."""

    learner: ToyLearner
    runner: Runner | None = None
    states: list[Any] = field(default_factory=list)
    waits: list[str] = field(default_factory=list)

    def wants(self) -> bool:
        return not self.states

    def act(self) -> None:
        assert self.runner is not None
        with self.runner.quiet():
            self.states.append(self.runner.state())
        self.waits = [node.name for node in self.runner.describe().nodes if node.waits_for]
        self.learner.stop.set()


def samples() -> Stream[Any]:
    return REPLAY.samples(batch_items=2, name="samples")


FLOWS: dict[str, Callable[[Stream[Any]], Stream[Any]]] = {
    "messages": lambda stream: stream,
    "samples": lambda stream: union(stream, samples(), mode="as_ready", emit=1),
    "a queue": lambda stream: stream.prefetch(2),
    "a queue of a queue": lambda stream: stream.prefetch(2).prefetch(2),
    "any of two branches": lambda stream: union(stream, samples(), mode="as_ready", emit=[0, 1]),
}
