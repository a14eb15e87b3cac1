"""What single operators do beyond the conformance suite."""

from __future__ import annotations

from typing import Any

import pytest

from rollstream.errors import FlowError
from rollstream.flow import Stream, concatenate, update


def test_batch_joins_until_there_are_enough_steps(rig: Any, batches: Any) -> None:
    items = list(rig.run(lambda stream: stream.batch(steps=10), batches(6)))
    assert [item.env_steps for item in items] == [12, 12]
    assert items[0].columns["x"].tolist() == [1.0] * 4 + [2.0] * 4 + [3.0] * 4


def test_the_rest_of_a_finished_input_comes_out_short(rig: Any, batches: Any) -> None:
    items = list(rig.run(lambda stream: stream.take(4).batch(steps=10), batches(6)))
    assert [item.env_steps for item in items] == [12, 4]
    windows = list(rig.run(lambda stream: stream.take(4).window(items=3), batches(6)))
    assert [len(window) for window in windows] == [3, 1]


def test_when_the_flow_stops_the_rest_stays_in_the_buffer_for_the_checkpoint(rig: Any, batches: Any) -> None:
    runner = rig.run(lambda stream: stream.batch(steps=10), batches(4))
    assert [item.env_steps for item in runner] == [12]
    assert runner.in_flight_env_steps == 4
    assert rig.law_holds(runner)


def test_buffered_messages_are_acknowledged_and_the_last_of_a_batch_after_use(rig: Any, batches: Any) -> None:
    acknowledged: list[list[int]] = []

    def note(batch: Any) -> Any:
        acknowledged.append([message.sequence for message in rig.edge.acknowledged])
        return batch

    list(rig.run(lambda stream: stream.batch(steps=12).for_each(note), batches(6)))
    assert acknowledged == [[1, 2], [1, 2, 3, 4, 5]]
    assert len(rig.edge.acknowledged) == 6


def test_windows_of_batches_can_be_concatenated(rig: Any, batches: Any) -> None:
    items = list(rig.run(lambda stream: stream.window(items=2).for_each(concatenate()).for_each(update()), batches(4)))
    assert [item.env_steps for item in items] == [8, 8]
    assert rig.counters.value("env_steps_trained") == 16


def test_flatten_shares_out_the_environment_steps(rig: Any, batches: Any) -> None:
    runner = rig.run(lambda stream: stream.window(items=2).flatten().for_each(update()), batches(4))
    next(runner)
    assert rig.counters.value("env_steps_trained") == 4
    assert rig.law_holds(runner)
    assert len(list(runner)) == 3


def test_a_message_is_acknowledged_when_its_last_part_has_been_used(rig: Any, batches: Any, batch_of: Any) -> None:
    def halves(batch: Any) -> Any:
        return (batch_of(1, env_steps=3), batch_of(2, env_steps=1))

    runner = rig.run(lambda stream: stream.for_each(halves).flatten(), batches(1), stays_open=True)
    next(runner)
    assert rig.edge.acknowledged == []
    next(runner)
    assert len(rig.edge.acknowledged) == 1


def test_parts_that_do_not_add_up_are_refused(rig: Any, batches: Any, batch_of: Any) -> None:
    with pytest.raises(FlowError, match="got members of 3 env_steps together for an item of 4"):
        list(rig.run(lambda stream: stream.for_each(lambda batch: [batch_of(1, env_steps=3)]).flatten(), batches(1)))


def test_an_item_without_members_is_dropped_and_counted(rig: Any, batches: Any) -> None:
    runner = rig.run(lambda stream: stream.for_each(lambda batch: []).flatten(), batches(2))
    assert list(runner) == []
    assert rig.counters.value("env_steps_dropped", reason="flatten") == 8


def test_what_a_filter_drops_is_counted_under_its_name_and_acknowledged(rig: Any, batches: Any) -> None:
    def is_odd(batch: Any) -> bool:
        return bool(batch.sequence % 2)

    runner = rig.run(lambda stream: stream.filter(is_odd).for_each(update()), batches(5))
    assert [item.sequence for item in runner] == [1, 3, 5]
    assert rig.counters.value("env_steps_dropped", reason="is_odd") == 8
    assert rig.counters.value("env_steps_trained") == 12
    assert len(rig.edge.acknowledged) == 5


def test_take_stops_pulling_after_its_last_item(rig: Any, batches: Any) -> None:
    runner = rig.run(lambda stream: stream.take(2), batches(5))
    assert [item.sequence for item in runner] == [1, 2]
    assert rig.edge.given == 2


def test_throttle_lets_one_item_through_an_interval_of_time(rig: Any, batches: Any) -> None:
    def one_second(batch: Any) -> Any:
        rig.learner.clock.advance(1.0)
        return batch

    runner = rig.run(lambda stream: stream.for_each(update()).for_each(one_second).throttle(every_s=3), batches(7))
    assert [item.sequence for item in runner] == [3, 6]
    assert rig.counters.value("env_steps_trained") == 28
    assert rig.counters.value("env_steps_dropped") == 0


def test_throttle_lets_one_item_through_an_interval_of_environment_steps(rig: Any, batches: Any) -> None:
    runner = rig.run(lambda stream: stream.throttle(every_steps=8), batches(5))
    assert [item.sequence for item in runner] == [2, 4]
    assert rig.counters.value("env_steps_dropped", reason="throttle") == 12


def test_what_reaches_the_end_untrained_is_counted_as_such(rig: Any, batches: Any) -> None:
    list(rig.run(lambda stream: stream, batches(2)))
    assert rig.counters.value("env_steps_dropped", reason="not_trained") == 8


def test_prefetch_pulls_no_further_ahead_than_its_length(rig: Any, batches: Any) -> None:
    runner = rig.run(lambda stream: stream.prefetch(3), batches(50))
    next(runner)
    rig.learner.stop.wait(0.05)
    assert rig.edge.given == 1 + 3 + 1
    (view,) = [node for node in runner.describe().nodes if node.name == "prefetch"]
    assert (view.depth_items, view.bound_items) == (3, 3)


def test_environment_steps_of_copies_are_counted_once(rig: Any, batches: Any) -> None:
    from rollstream.flow import union

    def build(stream: Stream[Any]) -> Stream[Any]:
        first, second = stream.duplicate(2)
        return union(first.for_each(update()), second.for_each(update()), mode="round_robin")

    runner = rig.run(build, batches(3))
    assert len(list(runner)) == 6
    assert rig.counters.value("env_steps_trained") == 12
    assert len(rig.edge.acknowledged) == 3
    assert rig.law_holds(runner)


def test_a_step_may_be_a_function_without_state_and_is_closed_when_it_can_be(rig: Any, batches: Any) -> None:
    from rollstream.flow import Step

    closed: list[bool] = []

    class Holding:
        def __call__(self, item: Any) -> Any:
            return item

        def close(self) -> None:
            closed.append(True)

    held = Step(name="holding", bind=lambda side: Holding())
    runner = rig.run(lambda stream: stream.for_each(held).filter(held), batches(1))
    list(runner)
    runner.close()
    assert closed == [True, True]
