"""A running flow shows names, rates, depth and who waits."""

from __future__ import annotations

from typing import Any

from rollstream.clock import FakeClock
from rollstream.flow import (
    ActorFragment,
    Actors,
    Description,
    InlineEdges,
    LearnerHandle,
    Runner,
    TableHandle,
    advantages,
    standardize,
    store_into,
    union,
    view_of,
)
from rollstream.flow.toy import ToyActor, ToyLearner

REPLAY = TableHandle(name="replay")


def test_a_chain_is_drawn_as_one_line_with_its_edge() -> None:
    learner = LearnerHandle()
    flow = Description(
        Actors()
        .rollouts(steps=4)
        .for_each(advantages(discount=0.9, gae_lambda=0.9))
        .gather_sync()
        .for_each(standardize("advantage"))
        .for_each(learner.update())
        .for_each(learner.publish())
        .report(every_s=1)
    )
    lines = view_of(flow).draw().splitlines()
    assert lines[0] == "rollouts ── advantages ══▶ gather_sync ── standardize ── update ── publish ── report"
    assert "gather_sync  gather_sync in the learner" in lines


def test_branches_are_drawn_one_a_line() -> None:
    learner = LearnerHandle()
    store = Actors().rollouts(steps=4).for_each(store_into(REPLAY, 1)).gather_async()
    first, second = REPLAY.samples(batch_items=2, prefetch=2).for_each(learner.update()).duplicate(2)
    flow = Description(union(store, first, second).report(every_s=1))
    assert view_of(flow).draw().splitlines()[:5] == [
        "rollouts ── store_into ══▶ gather_async ──▶ union",
        "samples_replay ── prefetch ── update ── duplicate ──▶ duplicate.1, duplicate.2",
        "duplicate.1 ──▶ union",
        "duplicate.2 ──▶ union",
        "union ── report",
    ]


def test_rates_are_over_the_last_seconds() -> None:
    clock = FakeClock()
    flow = Description(Actors().rollouts(steps=5).for_each(advantages(discount=0.9, gae_lambda=0.9)).gather_async())
    learner = ToyLearner(clock=clock)
    edges = InlineEdges([ActorFragment(flow, ToyActor(clock=clock, environments=2))])
    learner.edges = lambda name, in_flight: edges.source(name, in_flight=in_flight)
    runner = Runner(flow, learner, inline=True)
    assert runner.describe().nodes[-1].items_per_s is None
    for _ in range(20):
        next(runner)
        clock.advance(0.5)
    gather = runner.describe().nodes[-1]
    assert gather.items_per_s == 2.0
    assert gather.env_steps_per_s == 20.0
    for _ in range(30):
        next(runner)
        clock.advance(0.25)
        runner.describe()
    assert 2.0 < (runner.describe().nodes[-1].items_per_s or 0.0) <= 4.0


def test_nodes_of_the_actors_are_shown_without_rates_and_the_edge_with_its_own(rig: Any, batches: Any) -> None:
    runner = rig.run(lambda stream: stream.take(9), batches(3))
    list(runner)
    rig.learner.clock.advance(1.0)
    view = runner.describe()
    assert [node.items for node in view.nodes] == [None, None, 3, 3]
    crossing = [edge for edge in view.edges if edge.crosses]
    assert [(edge.source, edge.target, edge.items_per_s) for edge in crossing] == [("as_batch", "gather", 3.0)]
    assert view.in_flight_env_steps == 0
    assert {"name", "kind", "where", "file", "line", "waits_for", "depth_items"} <= set(view.to_json()["nodes"][0])


def test_seconds_of_work_are_measured_for_each_step(rig: Any, batches: Any) -> None:
    def slow(batch: Any) -> Any:
        rig.learner.clock.advance(2.0)
        return batch

    runner = rig.run(lambda stream: stream.for_each(slow), batches(3))
    list(runner)
    assert runner.describe().nodes[-1].busy_s == 6.0
