"""PPO as a page of dataflow: barrier, update, publication, acknowledgement, inline and between threads."""

from __future__ import annotations

import threading

import pytest

from rollstream.clock import FakeClock, SystemClock
from rollstream.flow import (
    ActorFragment,
    Actors,
    Description,
    InlineEdges,
    LearnerHandle,
    Runner,
    Stream,
    advantages,
    standardize,
)
from rollstream.flow.toy import ToyActor, ToyEdge, ToyLearner
from rollstream.metrics import Report


def ppo(actors: Actors, learner: LearnerHandle) -> Stream[Report]:
    return (
        actors.rollouts(steps=4)
        .for_each(advantages(discount=0.99, gae_lambda=0.95))
        .gather_sync()
        .for_each(standardize("advantage"))
        .for_each(learner.update())
        .for_each(learner.publish())
        .report(every_s=0)
    )


def test_an_inline_flow_alternates_rollouts_and_updates_with_the_newest_weights() -> None:
    description = Description(ppo(Actors(count=2), LearnerHandle()))
    clock = FakeClock()
    learner = ToyLearner(clock=clock)
    sides = [ToyActor(actor=f"actor-{n}", clock=clock, version=learner.version) for n in range(2)]
    edges = InlineEdges([ActorFragment(description, side) for side in sides])
    learner.edges = lambda name, in_flight: edges.source(name, in_flight=in_flight)
    with Runner(description, learner, inline=True) as runner:
        reports = [next(runner) for _ in range(3)]
    assert [batch.version for batch in learner.learned] == [1, 2, 3]
    assert [report.env_steps for report in reports] == [16, 32, 48]
    assert [report.env_steps_trained for report in reports] == [16, 32, 48]
    assert reports[-1].mean_return == 3.0
    assert reports[-1].max_lag == 0
    assert reports[-1].metrics["loss"] == 3.0
    assert [report.number for report in reports] == [1, 2, 3]


def test_between_threads_every_round_has_one_message_of_each_actor_by_the_newest_weights() -> None:
    description = Description(ppo(Actors(count=2), LearnerHandle()))
    edge = ToyEdge(in_flight=1)
    learner = ToyLearner(clock=SystemClock(), edges=lambda name, in_flight: edge)
    fragments = [ActorFragment(description, ToyActor(actor=f"actor-{n}", version=learner.version)) for n in range(2)]

    def act(fragment: ActorFragment) -> None:
        edge.join(fragment.actor)
        while edge.wait_for_credit(fragment.actor):
            batch = fragment.run_once("gather_sync")
            assert batch is not None
            edge.send(batch)

    threads = [threading.Thread(target=act, args=(fragment,)) for fragment in fragments]
    edge.join("actor-0")
    edge.join("actor-1")
    for thread in threads:
        thread.start()
    with Runner(description, learner) as runner:
        reports = [next(runner) for _ in range(20)]
    for fragment in fragments:
        edge.leave(fragment.actor)
    for thread in threads:
        thread.join(10)
    assert reports[-1].env_steps_trained == 20 * 16
    assert [batch.version for batch in learner.learned] == list(range(1, 21))
    assert all(batch.env_steps == 16 for batch in learner.learned)
    assert learner.counters.value("env_steps_dropped") == 0


@pytest.mark.parametrize("inline", [True, False])
def test_the_runner_ends_when_the_learner_is_told_to_stop(inline: bool) -> None:
    description = Description(ppo(Actors(count=1), LearnerHandle()))
    learner = ToyLearner()
    edges = InlineEdges([ActorFragment(description, ToyActor(version=learner.version))])
    learner.edges = lambda name, in_flight: edges.source(name, in_flight=in_flight)
    runner = Runner(description, learner, inline=inline)
    next(runner)
    learner.stop.set()
    assert list(runner) == []
