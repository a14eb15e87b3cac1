"""Counters add up: sampled = trained + stored + dropped + in flight, for every chain of operators, at every moment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from rollstream.flow import Actors, Runner, Stream, TableHandle, filter_lag, store_into, union, update
from rollstream.flow.toy import ToyLearner
from rollstream.spaces import Batch


@dataclass
class Edge:
    """Gives its messages, then stops the learner. An acknowledgement that comes twice is an error."""

    learner: ToyLearner
    messages: list[Batch]
    unacknowledged: list[Batch] = field(default_factory=list)

    def next(self, timeout_s: float) -> Batch | None:
        if not self.messages:
            self.learner.stop.set()
            return None
        self.unacknowledged.append(self.messages.pop(0))
        return self.unacknowledged[-1]

    def at_hand(self) -> Batch | None:
        return None

    def ack(self, *batches: Batch) -> None:
        for batch in batches:
            self.unacknowledged.remove(batch)

    def live_actors(self) -> set[str]:
        return {batch.actor for batch in self.messages[:2]}

    def ready(self) -> bool:
        return True


def halves(batch: Any) -> Any:
    if not isinstance(batch, Batch):
        return batch
    first = batch.env_steps // 2
    return tuple(
        Batch(columns={}, env_steps=steps, version=batch.version, newest_version=batch.version)
        for steps in (first, batch.env_steps - first)
    )


def odd_steps(item: Any) -> bool:
    return bool(getattr(item, "env_steps", 1) % 2)


def in_copies(stream: Stream[Any]) -> Stream[Any]:
    first, second = stream.duplicate(2)
    trained = first.for_each(update())
    return union(trained, second, mode="round_robin", emit=trained)


OPERATORS: dict[str, Callable[[Stream[Any]], Stream[Any]]] = {
    "filter": lambda stream: stream.filter(odd_steps),
    "lag": lambda stream: stream.filter(filter_lag(max_lag=1)),
    "batch": lambda stream: stream.batch(steps=7),
    "halve": lambda stream: stream.for_each(halves).flatten(),
    "window": lambda stream: stream.window(items=2).flatten(),
    "update": lambda stream: stream.for_each(update()),
    "prefetch": lambda stream: stream.prefetch(2),
    "throttle": lambda stream: stream.throttle(every_steps=5),
    "take": lambda stream: stream.take(6),
    "copies": in_copies,
}

chains = st.lists(st.sampled_from(sorted(OPERATORS)), max_size=5)
messages = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3), st.sampled_from("abc")), max_size=12)


def make_messages(given_messages: list[tuple[int, int, str]]) -> list[Batch]:
    return [
        Batch(columns={}, env_steps=steps, version=version, newest_version=version, actor=actor, sequence=index)
        for index, (steps, version, actor) in enumerate(given_messages)
    ]


def stored(rollout: Any) -> Any:
    return rollout


def check(learner: ToyLearner, runner: Runner) -> None:
    counters = learner.counters
    left = sum(counters.value(f"env_steps_{name}") for name in ("trained", "stored", "dropped"))
    assert counters.value("env_steps_sampled") == left + runner.in_flight_env_steps
    assert runner.in_flight_env_steps >= 0


@settings(deadline=None, max_examples=150)
@given(chain=chains, given_messages=messages, barrier=st.booleans(), inline=st.booleans())
def test_counters_add_up_for_any_chain(
    chain: list[str], given_messages: list[tuple[int, int, str]], barrier: bool, inline: bool
) -> None:
    learner = ToyLearner(published=2)
    batches = make_messages(given_messages)
    edge = Edge(learner, list(batches))
    learner.edges = lambda name, in_flight: edge
    shards = Actors().rollouts(steps=1).for_each(stored)
    stream: Stream[Any] = shards.gather_sync() if barrier else shards.gather_async()
    for name in chain:
        stream = OPERATORS[name](stream)
    with Runner(stream, learner, inline=inline) as runner:
        for _ in runner:
            if inline:
                check(learner, runner)
    check(learner, runner)
    received = batches[: len(batches) - len(edge.messages)]
    gathered = sum(batch.env_steps for batch in received)
    sampled = learner.counters.value("env_steps_sampled")
    assert sampled <= gathered
    if not barrier:
        assert sampled == gathered


@settings(deadline=None, max_examples=50)
@given(chain=chains, given_messages=messages, cut=st.integers(0, 4))
def test_counters_add_up_after_a_restart_at_any_item(
    chain: list[str], given_messages: list[tuple[int, int, str]], cut: int
) -> None:
    learner = ToyLearner(published=2)
    batches = make_messages(given_messages)
    edge = Edge(learner, list(batches))
    learner.edges = lambda name, in_flight: edge

    def build() -> Runner:
        stream: Stream[Any] = Actors().rollouts(steps=1).for_each(stored).gather_async()
        for name in chain:
            stream = OPERATORS[name](stream)
        return Runner(stream, learner, inline=True)

    first = build()
    for _ in range(cut):
        next(first, None)
    state = first.state()
    first.close()
    learner.stop.clear()
    edge.messages = [*edge.unacknowledged, *edge.messages]
    edge.unacknowledged = []
    second = build()
    second.restore(state)
    list(second)
    check(learner, second)


@settings(deadline=None, max_examples=30)
@given(given_messages=messages)
def test_rows_that_lie_in_a_table_count_as_stored(given_messages: list[tuple[int, int, str]]) -> None:
    learner = ToyLearner()
    edge = Edge(learner, make_messages(given_messages))
    learner.edges = lambda name, in_flight: edge
    shards = Actors().rollouts(steps=1).for_each(store_into(TableHandle(name="replay"), 1))
    runner = Runner(shards.gather_sync(), learner, inline=True)
    list(runner)
    check(learner, runner)
    assert learner.counters.value("env_steps_stored") == learner.counters.value("env_steps_sampled")
    assert learner.counters.value("env_steps_dropped") == 0
