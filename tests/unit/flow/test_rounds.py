"""Rounds of the barrier: one version, those alive at the start, a deadline, and episodes of any length."""

from __future__ import annotations

from typing import Any

import pytest

from rollstream.clock import FakeClock
from rollstream.errors import ConfigError, FlowError
from rollstream.flow import ActorFragment, Actors, Description, InlineEdges, Runner, Stream, advantages, publish, update
from rollstream.flow.toy import ToyActor, ToyLearner
from rollstream.spaces import Batch, Rollout


def as_batch(rollout: Rollout) -> Batch:
    raise AssertionError("runs in the actors only")


def rounds(**settings: Any) -> Stream[Batch]:
    return Actors(count=2).rollouts(steps=1).for_each(as_batch).gather_sync(name="round", **settings)


def test_a_round_waits_for_those_alive_at_its_start_and_not_for_one_that_joins_meanwhile(rig: Any, batch_of: Any) -> None:
    rig.edge.live = {"a", "b"}
    rig.edge.messages = [batch_of(1, actor="a"), batch_of(1, actor="b")]
    original = rig.edge.next

    def next_and_join(timeout_s: float) -> Batch | None:
        rig.edge.live.add("c")
        message: Batch | None = original(timeout_s)
        return message

    rig.edge.next = next_and_join
    runner = Runner(rounds(), rig.learner)
    assert next(runner).env_steps == 8
    runner.close()


def test_one_that_joins_in_time_is_welcome(rig: Any, batch_of: Any) -> None:
    rig.edge.live = {"a", "b"}
    rig.edge.messages = [batch_of(1, actor="a"), batch_of(1, actor="c"), batch_of(1, actor="b")]
    runner = Runner(rounds(), rig.learner)
    assert next(runner).env_steps == 12
    runner.close()


def test_a_message_by_newer_weights_makes_the_older_ones_of_its_round_stale(rig: Any, batch_of: Any) -> None:
    rig.edge.live = {"a", "b"}
    old, new, again = batch_of(1, actor="a", version=1), batch_of(1, actor="b", version=2), batch_of(2, actor="a", version=2)
    rig.edge.messages = [old, new, again]
    runner = Runner(rounds(), rig.learner)
    item = next(runner)
    assert (item.version, item.newest_version, item.env_steps) == (2, 2, 8)
    assert rig.counters.value("env_steps_dropped", reason="stale") == 4
    assert rig.edge.acknowledged[0] is old
    assert rig.law_holds(runner)
    runner.close()


def test_weights_that_outrun_every_round_are_an_error_and_no_silence(rig: Any, batch_of: Any) -> None:
    rig.edge.live = {"a", "b"}
    rig.edge.messages = [batch_of(number, actor="ab"[number % 2], version=number) for number in range(2, 300)]
    with pytest.raises(FlowError, match="messages by older weights in one round: weights are published faster than a round"):
        list(Runner(rounds(), rig.learner))


def test_a_round_goes_on_without_the_slow_one_when_its_deadline_passes_and_its_message_is_stale(rig: Any, batch_of: Any) -> None:
    rig.edge.live = {"a", "slow"}
    late = batch_of(1, actor="slow", version=1)
    rig.edge.messages = [batch_of(1, actor="a")]
    rig.edge.stays_open = True
    original, waits = rig.edge.next, []

    def next_and_time_passes(timeout_s: float) -> Batch | None:
        message: Batch | None = original(timeout_s)
        if message is None:
            waits.append(runner.describe().nodes[2].waits_for)
            rig.learner.clock.advance(2.0)
        return message

    rig.edge.next = next_and_time_passes
    runner = Runner(rounds(deadline_s=5.0).for_each(update()).for_each(publish()), rig.learner)
    assert next(runner).env_steps == 4
    assert waits[-1] == "messages on edge round of slow"
    assert rig.counters.value("rounds_cut_short") == 1
    rig.edge.messages += [late, batch_of(2, actor="a", version=2), batch_of(2, actor="slow", version=2)]
    assert next(runner).env_steps == 8
    assert rig.counters.value("env_steps_dropped", reason="stale") == 4
    assert any(batch is late for batch in rig.edge.acknowledged)
    assert rig.law_holds(runner)
    runner.close()


def test_the_deadline_begins_with_the_first_message_of_a_round(rig: Any, batch_of: Any) -> None:
    rig.edge.live = {"a", "b"}
    rig.learner.clock.advance(100.0)
    rig.edge.messages = [batch_of(1, actor="a"), batch_of(1, actor="b")]
    runner = Runner(rounds(deadline_s=1.0), rig.learner)
    rig.learner.clock.advance(100.0)
    assert next(runner).env_steps == 8
    runner.close()


def test_the_deadline_is_checked_when_the_flow_is_built() -> None:
    with pytest.raises(ConfigError, match="deadline_s of gather_sync must be >= 0, got -1"):
        rounds(deadline_s=-1)


def test_a_long_episode_never_holds_up_a_round() -> None:
    """Episodes of 10 to 10,000 steps side by side: every round has the same steps of each, however long the episodes are."""
    lengths = (10, 100, 1_000, 10_000)
    learner = ToyLearner(clock=FakeClock())
    flow = Description(
        Actors(count=4)
        .rollouts(steps=50)
        .for_each(advantages(discount=0.9, gae_lambda=0.9))
        .gather_sync()
        .for_each(update())
        .for_each(publish())
    )
    actors = [
        ToyActor(actor=f"actor-{length}", episode_steps=length, environments=1, version=learner.version) for length in lengths
    ]
    edges = InlineEdges([ActorFragment(flow, actor) for actor in actors])
    learner.edges = lambda name, in_flight: edges.source(name, in_flight=in_flight)
    with Runner(flow, learner, inline=True) as runner:
        sizes = [next(runner).env_steps for _ in range(200)]
    assert sizes == [4 * 50] * 200
    assert [actor.episodes for actor in actors] == [1_000, 100, 10, 1]
    assert learner.counters.value("env_steps_dropped") == 0
