"""Inline edges: actors take turns in the learner's thread, within their credit."""

from __future__ import annotations

import threading

import pytest

from rollstream.errors import ConfigError, DeadlineExceeded
from rollstream.flow import ActorFragment, Actors, Description, InlineEdges, Runner, advantages, update
from rollstream.flow.toy import ToyActor, ToyLearner

FLOW = Description(
    Actors(count=3).rollouts(steps=2).for_each(advantages(discount=0.9, gae_lambda=0.9)).gather_async(in_flight=1).prefetch(4)
)


def edges_of(count: int) -> InlineEdges:
    return InlineEdges([ActorFragment(FLOW, ToyActor(actor=f"actor-{number}")) for number in range(count)])


def test_actors_take_turns() -> None:
    edge = edges_of(3).source("gather_async", in_flight=2)
    batches = [edge.next(0.0) for _ in range(5)]
    assert [(batch.actor, batch.sequence) for batch in batches if batch is not None] == [
        ("actor-0", 1),
        ("actor-1", 1),
        ("actor-2", 1),
        ("actor-0", 2),
        ("actor-1", 2),
    ]
    assert edge.live_actors() == {"actor-0", "actor-1", "actor-2"}


def test_an_actor_without_credit_is_passed_over_and_comes_back_when_acknowledged() -> None:
    edge = edges_of(2).source("gather_async", in_flight=1)
    first, second = edge.next(0.0), edge.next(0.0)
    assert not edge.ready()
    assert second is not None
    edge.ack(second)
    third = edge.next(0.0)
    assert third is not None
    assert third.actor == "actor-1"
    assert first is not None


def test_when_everyone_waits_for_the_one_who_asks_an_error_says_so() -> None:
    edge = edges_of(1).source("gather_async", in_flight=1)
    edge.next(0.0)
    with pytest.raises(DeadlineExceeded, match="every actor waits for the learner .* in one thread"):
        edge.next(0.0)


def test_inline_mode_needs_an_actor() -> None:
    with pytest.raises(ConfigError, match="inline mode needs at least one actor fragment"):
        InlineEdges([])


def test_inline_everything_happens_in_the_callers_thread() -> None:
    threads: set[str] = set()

    class Noting(ToyActor):
        def collect(self, *, steps: int, pull: bool = True):  # type: ignore[no-untyped-def]
            threads.add(threading.current_thread().name)
            return ToyActor.collect(self, steps=steps, pull=pull)

    flow = Description(
        Actors().rollouts(steps=2).for_each(advantages(discount=0.9, gae_lambda=0.9)).gather_sync().prefetch(3).for_each(update())
    )
    learner = ToyLearner()
    edges = InlineEdges([ActorFragment(flow, Noting())])
    learner.edges = lambda name, in_flight: edges.source(name, in_flight=in_flight)
    before = threading.active_count()
    runner = Runner(flow, learner, inline=True)
    next(runner)
    next(runner)
    assert threads == {threading.current_thread().name}
    assert threading.active_count() == before
