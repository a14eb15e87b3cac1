"""Reports: what happened since the last one, never NaN."""

from __future__ import annotations

from typing import Any

import numpy as np

from rollstream.flow import update
from rollstream.spaces import Batch, Episodes


def test_rates_are_over_the_time_since_the_last_report(rig: Any, batches: Any) -> None:
    def half_a_second(batch: Batch) -> Batch:
        rig.learner.clock.advance(0.5)
        return batch

    runner = rig.run(lambda stream: stream.for_each(update()).for_each(half_a_second).report(every_s=2), batches(10))
    reports = list(runner)
    assert [report.env_steps for report in reports] == [4, 20, 36]
    assert [report.env_steps_per_s for report in reports] == [8.0, 8.0, 8.0]
    assert [report.updates_per_s for report in reports] == [2.0, 2.0, 2.0]
    assert [report.wall_s for report in reports] == [0.5, 2.5, 4.5]
    assert reports[-1].counters["env_steps_trained"] == 36


def test_the_first_update_is_told_at_once_and_no_other(rig: Any, batches: Any) -> None:
    reports = list(rig.run(lambda stream: stream.for_each(update()).report(every_s=1_000), batches(5)))
    assert [report.updates for report in reports] == [1]


def test_without_an_update_there_is_no_first_result(rig: Any, batches: Any) -> None:
    assert list(rig.run(lambda stream: stream.report(every_s=1_000), batches(5))) == []


def test_before_an_episode_has_ended_there_is_no_return(rig: Any, batches: Any) -> None:
    (report,) = rig.run(lambda stream: stream.for_each(update()).report(every_s=0), batches(1))
    assert report.mean_return is None
    assert report.mean_episode_steps is None
    assert report.env_steps_per_s is None
    assert report.episodes == 0


def test_returns_are_those_of_the_last_hundred_episodes(rig: Any, batch_of: Any) -> None:
    ended = Batch(
        columns={},
        env_steps=1,
        version=1,
        newest_version=1,
        actor="actor-0",
        episodes=Episodes(returns=np.arange(150.0), lengths=np.arange(150)),
    )
    (report,) = rig.run(lambda stream: stream.report(every_s=0), [ended])
    assert report.mean_return == np.arange(50.0, 150.0).mean()
    assert report.mean_episode_steps == np.arange(50, 150).mean()
    assert report.episodes == 150


def test_lag_is_that_of_what_was_trained_on_since_the_last_report(rig: Any, batch_of: Any) -> None:
    rig.learner.published = 9
    items = [batch_of(1, version=9), batch_of(2, version=5), batch_of(3, version=8)]
    first, second, third = rig.run(lambda stream: stream.for_each(update()).report(every_s=0), items)
    assert [(report.lag, report.max_lag) for report in (first, second, third)] == [(0.0, 0.0), (4.0, 4.0), (1.0, 1.0)]


def test_waits_are_told_by_who_and_for_what(rig: Any, batches: Any) -> None:
    original = rig.edge.next

    def slow_next(timeout_s: float) -> Batch | None:
        rig.learner.clock.advance(0.5)
        return original(timeout_s)  # type: ignore[no-any-return]

    rig.edge.next = slow_next
    first, *_ = rig.run(lambda stream: stream.report(every_s=1), batches(4))
    assert first.waits == {"gather -> messages on edge gather": 1.0}
