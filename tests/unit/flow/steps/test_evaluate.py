"""evaluate: a schedule that survives a restart, and episodes that count."""

from __future__ import annotations

from typing import Any

from rollstream.flow import update
from rollstream.flow.steps import evaluate
from rollstream.flow.toy import ToyLearner
from rollstream.spaces import Batch


def _batch() -> Batch:
    return Batch(columns={}, env_steps=0, version=1, newest_version=1)


def test_episodes_are_played_once_in_so_many_updates() -> None:
    side = ToyLearner()
    step: Any = evaluate(every_updates=3, episodes=2).bind(side)
    told = []
    for updates in (1, 3, 4, 6):
        side.updated = updates
        told.append(step(_batch()))
    assert [batch.episodes.returns.tolist() for batch in told] == [[], [3.0, 3.0], [], [6.0, 6.0]]
    assert [batch.metrics for batch in told] == [{}, {"evaluation_return": 3.0}, {}, {"evaluation_return": 6.0}]


def test_the_schedule_goes_on_where_it_was_after_a_restart() -> None:
    side = ToyLearner()
    step: Any = evaluate(every_updates=3, episodes=1).bind(side)
    side.updated = 2
    again: Any = evaluate(every_updates=3, episodes=1).bind(side)
    again.restore(step.state())
    side.updated = 3
    assert len(again(_batch()).episodes) == 1


def test_a_report_tells_the_returns_of_evaluations_and_counts_their_episodes(rig: Any, batches: Any) -> None:
    first, second = rig.run(
        lambda stream: stream.for_each(update()).for_each(evaluate(every_updates=1, episodes=4)).report(every_s=0), batches(2)
    )
    assert (first.episodes, second.episodes) == (4, 8)
    assert (first.mean_return, second.mean_return) == (1.0, 1.5)
