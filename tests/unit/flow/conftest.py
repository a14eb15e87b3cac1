"""Small flows in memory: an edge that holds given messages, a learner that counts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from rollstream.clock import FakeClock
from rollstream.flow import ActorFragment, Actors, Description, Runner, Stream
from rollstream.flow.toy import ToyActor, ToyLearner
from rollstream.metrics import Counters
from rollstream.spaces import Batch, Rollout


def make_batch(number: int, *, env_steps: int = 4, version: int = 1, actor: str = "actor-0") -> Batch:
    return Batch(
        columns={"x": np.full((env_steps,), number, np.float32)},
        env_steps=env_steps,
        version=version,
        newest_version=version,
        actor=actor,
        sequence=number,
    )


@dataclass
class PreloadedEdge:
    """Gives `messages` one by one; then the flow stops, unless `stays_open`. An exception among them is raised."""

    learner: ToyLearner
    messages: list[Batch | Exception]
    stays_open: bool = False
    given: int = 0
    asked: int = 0
    acknowledged: list[Batch] = field(default_factory=list)
    live: set[str] = field(default_factory=lambda: {"actor-0"})

    def next(self, timeout_s: float) -> Batch | None:
        self.asked += 1
        if self.given < len(self.messages):
            message = self.messages[self.given]
            self.given += 1
            if isinstance(message, Exception):
                raise message
            return message
        if not self.stays_open:
            self.learner.stop.set()
        self.learner.stop.wait(0.02)
        return None

    def at_hand(self) -> Batch | None:
        return None

    def ack(self, *batches: Batch) -> None:
        self.acknowledged.extend(batches)

    def live_actors(self) -> set[str]:
        return self.live

    def ready(self) -> bool:
        return self.given < len(self.messages) or not self.stays_open


@dataclass
class ActingEdge(PreloadedEdge):
    """In place of each message, an actor makes one: its steps of the flow run."""

    fragment: ActorFragment | None = None

    def next(self, timeout_s: float) -> Batch | None:
        message = super().next(timeout_s)
        if message is None or self.fragment is None:
            return message
        made = self.fragment.run_once(self.fragment.edges[0].name)
        assert made is not None
        self.messages[self.given - 1] = made
        return made


def as_batch(rollout: Rollout) -> Batch:
    """A step of the actors, so that the gather is given batches; never runs here."""
    return make_batch(0)


def messages() -> Stream[Batch]:
    return Actors().rollouts(steps=1).for_each(as_batch).gather_async(in_flight=8, name="gather")


class Rig:
    """A learner and an edge; `run` makes a runner of a flow over the edge's messages."""

    def __init__(self) -> None:
        self.learner = ToyLearner(clock=FakeClock())
        self.edge = PreloadedEdge(self.learner, [])
        self.learner.edges = lambda name, in_flight: self.edge
        self.runners: list[Runner] = []

    @property
    def counters(self) -> Counters:
        return self.learner.counters

    def run(
        self,
        build: Callable[[Stream[Any]], Stream[Any]],
        items: Sequence[Batch | Exception],
        *,
        inline: bool = False,
        stays_open: bool = False,
        actor: ToyActor | None = None,
    ) -> Runner:
        """With an `actor`, messages are made by its part of the flow, one for each of `items`."""
        self.learner.stop.clear()
        flow = Description(build(messages()))
        if actor is not None:
            self.edge = ActingEdge(self.learner, [], fragment=ActorFragment(flow, actor))
        self.edge.messages = list(items)
        self.edge.given = 0
        self.edge.stays_open = stays_open
        runner = Runner(flow, self.learner, inline=inline)
        self.runners.append(runner)
        return runner

    def law_holds(self, runner: Runner) -> bool:
        counted = {name: self.counters.value(f"env_steps_{name}") for name in ("sampled", "trained", "stored", "dropped")}
        left = counted["trained"] + counted["stored"] + counted["dropped"]
        return counted["sampled"] == left + runner.in_flight_env_steps


@pytest.fixture
def rig() -> Iterator[Rig]:
    rig = Rig()
    yield rig
    for runner in rig.runners:
        runner.close()
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("flow-")]


@pytest.fixture
def batches() -> Callable[[int], list[Batch]]:
    return lambda count: [make_batch(number + 1) for number in range(count)]


@pytest.fixture
def batch_of() -> Callable[..., Batch]:
    return make_batch


@pytest.fixture
def source() -> Callable[[], Stream[Batch]]:
    return messages
