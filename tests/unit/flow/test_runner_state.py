"""State survives: buffers, schedules and positions are saved and taken up again; what was under way is accounted for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rollstream.checkpoint.tree import join, split
from rollstream.errors import CheckpointError, ConfigError
from rollstream.flow import Runner, Stream, publish, update
from rollstream.metrics import Counters


def through_a_checkpoint(state: Any) -> Any:
    import json

    value, arrays = split(state)
    return join(json.loads(json.dumps(value)), arrays)


def test_a_buffer_continues_after_a_restart_with_the_same_rows(rig: Any, batches: Any, batch_of: Any) -> None:
    build = lambda stream: stream.batch(steps=12).for_each(update())  # noqa: E731
    runner = rig.run(build, batches(2))
    assert list(runner) == []
    state = through_a_checkpoint(runner.state())

    again: Runner = rig.run(build, [batch_of(3)])
    again.restore(state)
    (item,) = list(again)
    assert item.columns["x"].tolist() == [1.0] * 4 + [2.0] * 4 + [3.0] * 4
    assert item.columns["x"].dtype == np.float32
    assert rig.counters.value("env_steps_trained") == 12
    assert rig.counters.value("env_steps_dropped") == 0
    assert rig.law_holds(again)


def test_windows_take_and_throttle_continue_after_a_restart(rig: Any, batches: Any) -> None:
    build = lambda stream: stream.take(3).throttle(every_steps=4).window(items=2)  # noqa: E731
    runner = rig.run(build, batches(1))
    assert list(runner) == []
    state = through_a_checkpoint(runner.state())
    again = rig.run(build, batches(9))
    again.restore(state)
    windows = list(again)
    assert [[item.sequence for item in window] for window in windows] == [[1, 1], [2]]


def test_what_was_under_way_and_not_buffered_is_dropped_and_counted_at_the_restart(rig: Any, batches: Any) -> None:
    runner = rig.run(lambda stream: stream.prefetch(3).for_each(update()), batches(5), stays_open=True)
    next(runner)
    rig.learner.stop.wait(0.05)
    assert rig.law_holds(runner)
    state, saved = runner.state(), rig.counters.snapshot()
    runner.close()

    rig.learner.counters = Counters()
    rig.learner.counters.restore(saved)
    again = rig.run(lambda stream: stream.prefetch(3).for_each(update()), batches(5))
    again.restore(state)
    assert len(list(again)) == 5
    lost = rig.counters.value("env_steps_dropped", reason="restart")
    assert lost == saved["env_steps_sampled"] - saved["env_steps_trained"] > 0
    assert rig.law_holds(again)


def test_counters_newer_than_the_buffers_do_not_break_the_law(rig: Any, batches: Any) -> None:
    build = lambda stream: stream.batch(steps=8).for_each(update())  # noqa: E731
    runner = rig.run(build, batches(1))
    list(runner)
    state = runner.state()
    rig.counters.add("env_steps_trained", 4)  # trained on after the checkpoint, and told to the cell
    again = rig.run(build, batches(1))
    again.restore(state)
    list(again)
    assert rig.counters.value("env_steps_sampled") == 12
    assert rig.law_holds(again)


def test_schedules_of_steps_are_part_of_the_state(rig: Any, batches: Any) -> None:
    build = lambda stream: stream.for_each(update()).for_each(publish(every_updates=3))  # noqa: E731
    runner = rig.run(build, batches(2))
    list(runner)
    state = through_a_checkpoint(runner.state())
    again = rig.run(build, batches(1))
    again.restore(state)
    list(again)
    assert rig.learner.published == 2


def test_returns_and_numbers_of_reports_continue(rig: Any, batches: Any) -> None:
    runner = rig.run(lambda stream: stream.report(every_s=0), batches(2))
    list(runner)
    state = through_a_checkpoint(runner.state())
    again = rig.run(lambda stream: stream.report(every_s=0), batches(1))
    again.restore(state)
    assert [report.number for report in again] == [3]


def test_a_state_of_another_flow_is_refused_with_what_differs(rig: Any, batches: Any) -> None:
    state = rig.run(lambda stream: stream.take(3).batch(steps=8, name="x"), []).state()
    other = rig.run(lambda stream: stream.window(items=2, name="x").prefetch(2), [])
    with pytest.raises(
        CheckpointError,
        match="the flow differs from the one that was saved: it has no 'take'; 'prefetch' is new; 'x' was a batch",
    ):
        other.restore(state)


def test_a_flow_that_has_started_takes_no_state(rig: Any, batches: Any) -> None:
    runner = rig.run(lambda stream: stream, batches(2))
    next(runner)
    with pytest.raises(ConfigError, match="restore the state of a flow before its first item"):
        runner.restore(runner.state())


def test_items_that_cannot_be_saved_are_named(rig: Any, batches: Any) -> None:
    runner = rig.run(lambda stream: stream.for_each(lambda batch: object()).window(items=2), batches(1))
    list(runner)
    with pytest.raises(CheckpointError, match="window holds a object, which cannot be saved"):
        runner.state()


def test_plain_values_in_buffers_are_saved(rig: Any, batches: Any) -> None:
    build = lambda stream: stream.for_each(lambda batch: 2.5).window(items=2)  # noqa: E731
    runner = rig.run(build, batches(1))
    list(runner)
    again = rig.run(build, batches(1))
    again.restore(through_a_checkpoint(runner.state()))
    assert list(again) == [(2.5, 2.5)]


def test_a_runner_can_be_closed_twice_and_used_as_a_context(rig: Any, batches: Any) -> None:
    build: Any = Stream.prefetch
    with rig.run(lambda stream: build(stream, 2), batches(50)) as runner:
        next(runner)
    runner.close()
    assert list(runner) == []
