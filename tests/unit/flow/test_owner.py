"""Who pulls a flow may act while it waits, whatever it waits for: nothing may come any more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from rollstream.errors import LeaseLost
from rollstream.flow import Actors, Runner, Stream, TableHandle, union
from rollstream.flow.toy import ToyLearner, ToyTable
from rollstream.spaces import Batch, Rollout

REPLAY = TableHandle(name="replay")


def as_batch(rollout: Rollout) -> Batch:
    raise AssertionError("runs in the actors only")


def messages() -> Stream[Batch]:
    return Actors().rollouts(steps=1).for_each(as_batch).gather_async(name="gather")


@dataclass
class StopsTheFlow:
    """An owner that has one thing to do, once the flow waits: look at it, and end it."""

    learner: ToyLearner
    runner: Runner | None = None
    states: list[Any] = field(default_factory=list)

    def wants(self) -> bool:
        return not self.states

    def act(self) -> None:
        assert self.runner is not None
        with self.runner.quiet():
            self.states.append(self.runner.state())
        self.learner.stop.set()


def with_samples(stream: Stream[Any], *, emits_both: bool) -> Stream[Any]:
    samples = REPLAY.samples(batch_items=2, name="samples")
    return union(stream, samples, mode="as_ready", emit=[stream, samples] if emits_both else samples)


def copies(stream: Stream[Any]) -> Stream[Any]:
    first, second = stream.duplicate(2)
    return union(first, second, mode="as_ready", emit=first)


FLOWS: dict[str, Callable[[Stream[Any]], Stream[Any]]] = {
    "messages": lambda stream: stream,
    "samples": lambda stream: with_samples(stream, emits_both=False),
    "a queue": lambda stream: stream.prefetch(2),
    "a queue of a queue": lambda stream: stream.prefetch(2).prefetch(2),
    "any of two branches": lambda stream: with_samples(stream, emits_both=True),
    "another copy": copies,
}


@pytest.mark.parametrize("waits_for", FLOWS)
def test_the_owner_acts_while_the_flow_waits(waits_for: str, rig: Any) -> None:
    rig.learner.tables = {"replay": ToyTable()}
    owner = StopsTheFlow(rig.learner)
    rig.edge.stays_open = True
    owner.runner = runner = Runner(FLOWS[waits_for](messages()).report(every_s=0), rig.learner, owner=owner)
    rig.runners.append(runner)
    assert list(runner) == []
    (state,) = owner.states
    assert set(state["nodes"]) == {node.name for node in runner.describe().nodes if node.where == "learner"}


def test_a_round_goes_on_where_it_was_after_the_owner_has_acted(rig: Any, batch_of: Any) -> None:
    acted: list[int] = []

    class Joins:
        """Lets the second actor send, once the first has."""

        def wants(self) -> bool:
            return rig.edge.given == 1 and not acted

        def act(self) -> None:
            acted.append(rig.edge.given)
            rig.edge.messages.append(batch_of(1, actor="b"))

    rig.edge.live, rig.edge.stays_open = {"a", "b"}, True
    rig.edge.messages = [batch_of(1, actor="a")]
    runner = Runner(Actors(count=2).rollouts(steps=1).for_each(as_batch).gather_sync(), rig.learner, owner=Joins())
    rig.runners.append(runner)
    assert next(runner).env_steps == 8
    assert acted == [1]


def test_what_the_owner_does_is_no_part_of_the_wait(rig: Any, batch_of: Any) -> None:
    seen: list[tuple[str, float]] = []

    class Sleeps:
        def wants(self) -> bool:
            return not seen

        def act(self) -> None:
            (node,) = [node for node in runner.describe().nodes if node.name == "gather"]
            seen.append((node.waits_for, node.waits_s))
            rig.learner.clock.advance(100.0)
            rig.edge.messages.append(batch_of(1))

    rig.edge.stays_open = True
    runner = Runner(messages().report(every_s=0), rig.learner, owner=Sleeps())
    rig.runners.append(runner)
    report = next(runner)
    assert seen == [("", 0.0)]
    assert sum(report.waits.values()) < 100.0


def test_an_error_of_the_owner_reaches_the_puller_unchanged(rig: Any) -> None:
    class Fails:
        def wants(self) -> bool:
            return True

        def act(self) -> None:
            raise LeaseLost("it is another's now")

    rig.edge.stays_open = True
    runner = Runner(messages().prefetch(1), rig.learner, owner=Fails())
    rig.runners.append(runner)
    with pytest.raises(LeaseLost, match="it is another's now"):
        next(runner)
