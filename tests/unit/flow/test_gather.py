"""The barrier and the asynchronous gather: rounds, stale messages, dead actors, acknowledgements."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rollstream.errors import FlowError
from rollstream.flow import Actors, Runner, Stream, filter_lag
from rollstream.flow.fragment import DROPPED_METRIC
from rollstream.flow.steps import publish, update
from rollstream.spaces import Batch, Episodes, Rollout


def as_batch(rollout: Rollout) -> Batch:
    raise AssertionError("runs in the actors only")


def rounds() -> Stream[Any]:
    return Actors(count=2).rollouts(steps=1).for_each(as_batch).gather_sync(name="round")


def test_a_round_waits_for_one_message_of_every_live_actor(rig: Any, batch_of: Any) -> None:
    rig.edge.live = {"a", "b"}
    rig.edge.messages = [batch_of(1, actor="b"), batch_of(1, actor="a"), batch_of(2, actor="a"), batch_of(2, actor="b")]
    runner = Runner(rounds(), rig.learner)
    items = list(runner)
    assert [item.columns["x"].tolist() for item in items] == [[1.0] * 8, [2.0] * 8]
    assert [item.env_steps for item in items] == [8, 8]


def test_rows_of_a_round_stand_in_the_order_of_the_actors_names(rig: Any, batch_of: Any) -> None:
    rig.edge.live = {"a", "b"}
    rig.edge.messages = [batch_of(9, actor="b", env_steps=1), batch_of(5, actor="a", env_steps=1)]
    (item,) = Runner(rounds(), rig.learner)
    assert item.columns["x"].tolist() == [5.0, 9.0]


def test_a_dead_actor_no_longer_holds_the_round(rig: Any, batch_of: Any) -> None:
    rig.edge.live = {"a", "b"}
    rig.edge.messages = [batch_of(1, actor="a")]
    rig.edge.stays_open = True
    runner = Runner(rounds(), rig.learner)
    asked_before = rig.edge.asked
    original = rig.edge.next

    def next_and_die(timeout_s: float) -> Batch | None:
        message = original(timeout_s)
        if rig.edge.asked > asked_before + 2:
            rig.edge.live.discard("b")
        return message

    rig.edge.next = next_and_die
    assert next(runner).env_steps == 4
    runner.close()


def test_a_message_by_older_weights_is_dropped_counted_and_acknowledged_at_once(rig: Any, batch_of: Any) -> None:
    rig.learner.published = 5
    stale, fresh = batch_of(1, version=4), batch_of(2, version=5)
    rig.edge.messages = [stale, fresh]
    runner = Runner(rounds(), rig.learner)
    item = next(runner)
    assert item.version == 5
    assert rig.counters.value("env_steps_dropped", reason="stale") == 4
    assert rig.edge.acknowledged[0] is stale
    assert rig.law_holds(runner)
    runner.close()


def test_of_two_messages_of_one_actor_in_a_round_the_newer_counts(rig: Any, batch_of: Any) -> None:
    rig.edge.live = {"a", "b"}
    rig.edge.messages = [batch_of(1, actor="a"), batch_of(2, actor="a"), batch_of(1, actor="b")]
    runner = Runner(rounds(), rig.learner)
    assert next(runner).columns["x"].tolist() == [2.0] * 4 + [1.0] * 4
    assert rig.counters.value("env_steps_dropped", reason="repeated") == 4
    runner.close()


def test_a_message_is_acknowledged_after_the_update_and_the_publication_that_it_led_to(rig: Any, batch_of: Any) -> None:
    seen: list[tuple[int, int]] = []

    def ack(*batches: Batch) -> None:
        seen.append((rig.learner.updated, rig.learner.published))

    rig.edge.ack = ack
    rig.edge.messages = [batch_of(1), batch_of(2, version=2)]
    runner = Runner(rounds().for_each(update()).for_each(publish()).report(every_s=0), rig.learner)
    next(runner)
    next(runner)
    assert seen == [(1, 2), (2, 3)]
    runner.close()


def test_prefetch_behind_a_barrier_does_not_acknowledge_early(rig: Any, batch_of: Any) -> None:
    rig.edge.messages = [batch_of(1), batch_of(2)]
    rig.edge.stays_open = True
    runner = Runner(rounds().prefetch(4).for_each(update()), rig.learner)
    next(runner)
    rig.learner.stop.wait(0.03)
    assert [batch.sequence for batch in rig.edge.acknowledged] == [1]
    rig.learner.stop.set()
    list(runner)


def test_batches_that_are_too_far_behind_are_filtered_and_counted(rig: Any, batches: Any, batch_of: Any) -> None:
    rig.learner.published = 10
    items = [batch_of(1, version=7), batch_of(2, version=8), batch_of(3, version=10)]
    runner = rig.run(lambda stream: stream.filter(filter_lag(max_lag=2)).for_each(update()), items)
    assert [item.version for item in runner] == [8, 10]
    assert rig.counters.value("env_steps_dropped", reason="max_lag") == 4
    assert rig.counters.value("env_steps_trained") == 8
    assert len(rig.edge.acknowledged) == 3


def test_messages_with_different_columns_cannot_be_joined(rig: Any, batch_of: Any) -> None:
    odd = Batch(columns={}, env_steps=4, version=1, newest_version=1, actor="b", sequence=1)
    rig.edge.live = {"a", "b"}
    rig.edge.messages = [batch_of(1, actor="a"), odd]
    with pytest.raises(FlowError, match="cannot join batches with different columns: x is not in all of them"):
        list(Runner(rounds(), rig.learner))


def test_a_waiting_gather_does_not_spin(rig: Any) -> None:
    rig.edge.stays_open = True

    def block(timeout_s: float) -> Batch | None:
        rig.edge.asked += 1
        rig.learner.stop.wait(timeout_s)
        return None

    rig.edge.next = block
    runner = Runner(rounds().prefetch(1), rig.learner)
    puller = threading.Thread(target=lambda: list(runner))
    puller.start()
    rig.learner.stop.wait(0.2)
    asked = rig.edge.asked
    waiting = {node.name: node.waits_for for node in runner.describe().nodes}
    rig.learner.stop.set()
    puller.join(10)
    assert asked <= 2
    assert waiting["round"].startswith("messages on edge round")
    assert waiting["prefetch"] == "items of round"


def test_a_message_of_a_round_that_was_never_complete_counts_once_though_it_comes_again(rig: Any, batch_of: Any) -> None:
    rig.edge.live = {"a", "b"}
    episodes = Episodes(returns=np.ones(3), lengths=np.ones(3, np.int64))
    first = replace(batch_of(1, actor="a"), episodes=episodes, metrics={f"{DROPPED_METRIC}max_lag": 2.0})
    rig.edge.messages = [first]
    assert list(Runner(rounds(), rig.learner)) == []
    assert rig.counters.value("episodes") == 0
    rig.learner.stop.clear()
    rig.edge.messages, rig.edge.given = [first, batch_of(1, actor="b")], 0
    list(Runner(rounds(), rig.learner))
    assert rig.counters.value("episodes") == 3
    assert rig.counters.value("env_steps_dropped", reason="max_lag") == 2


def test_what_a_refused_message_tells_beside_its_rows_counts_too(rig: Any, batch_of: Any) -> None:
    rig.learner.published = 5
    episodes = Episodes(returns=np.ones(3), lengths=np.ones(3, np.int64))
    rig.edge.messages = [replace(batch_of(1, version=4), episodes=episodes)]
    list(Runner(rounds(), rig.learner))
    assert rig.counters.value("episodes") == 3
