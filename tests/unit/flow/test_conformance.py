"""What every operator must do: empty, one item, slow reader, errors, stop, description, state, counters."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from rollstream.errors import FlowError
from rollstream.flow import Runner, Stream, filter_lag, union, update

Build = Callable[[Stream[Any]], Stream[Any]]


def keep(batch: Any) -> bool:
    return True


def same(item: Any) -> Any:
    return item


def in_a_list(item: Any) -> Any:
    return [item]


def both_copies(mode: Any) -> Build:
    def build(stream: Stream[Any]) -> Stream[Any]:
        first, second = stream.duplicate(2)
        return union(first, second, mode=mode, emit=first)

    return build


def is_odd(batch: Any) -> bool:
    return bool(batch.sequence % 2)


def is_even(batch: Any) -> bool:
    return not batch.sequence % 2


def two_emitted(stream: Stream[Any]) -> Stream[Any]:
    first, second = stream.duplicate(2)
    return union(first.filter(is_odd), second.filter(is_even))


OPERATORS: dict[str, Build] = {
    "gather": lambda stream: stream,
    "for_each": lambda stream: stream.for_each(same),
    "update": lambda stream: stream.for_each(update()),
    "filter": lambda stream: stream.filter(keep),
    "filter_lag": lambda stream: stream.filter(filter_lag(max_lag=3)),
    "batch": lambda stream: stream.batch(steps=1),
    "flatten": lambda stream: stream.for_each(in_a_list).flatten(),
    "take": lambda stream: stream.take(100),
    "window": lambda stream: stream.window(items=1),
    "prefetch": lambda stream: stream.prefetch(2),
    "throttle": lambda stream: stream.throttle(every_steps=1),
    "duplicate in turn": both_copies("round_robin"),
    "duplicate in threads": both_copies("as_ready"),
    "union of one": union,
    "union of two": two_emitted,
    "report": lambda stream: stream.report(every_s=0),
}

every_operator = pytest.mark.parametrize("build", OPERATORS.values(), ids=OPERATORS.keys())
MOST_HELD = 20
"""Items that any of these operators may hold: a duplicate lets one copy be 16 ahead, and a queue follows."""

both_modes = pytest.mark.parametrize("inline", [False, True], ids=["threads", "inline"])


@both_modes
@every_operator
def test_nothing_comes_out_of_an_empty_stream(rig: Any, build: Build, inline: bool) -> None:
    assert list(rig.run(build, [], inline=inline)) == []


@both_modes
@every_operator
def test_one_item_comes_out_once_and_is_acknowledged(rig: Any, batches: Any, build: Build, inline: bool) -> None:
    items = batches(1)
    runner = rig.run(build, items, inline=inline)
    assert len(list(runner)) == 1
    assert rig.edge.acknowledged == items
    assert rig.law_holds(runner)
    assert runner.in_flight_env_steps == 0


@both_modes
@every_operator
def test_a_slow_reader_holds_the_source_back(rig: Any, batches: Any, build: Build, inline: bool) -> None:
    runner = rig.run(build, batches(50), inline=inline)
    for _ in range(3):
        next(runner)
    rig.learner.stop.wait(0.02)
    assert rig.edge.given <= 3 + MOST_HELD
    assert rig.law_holds(runner)


@both_modes
@every_operator
def test_all_items_come_out_in_order(rig: Any, batches: Any, build: Build, inline: bool) -> None:
    runner = rig.run(build, batches(10), inline=inline)
    numbers = [getattr(item[0] if isinstance(item, tuple) else item, "sequence", None) for item in runner]
    assert len(numbers) == 10
    if numbers[0] is not None:
        in_order = sorted(numbers) if build is two_emitted else numbers
        assert [number for number in in_order if number] in ([*range(1, 11)], [])
    assert rig.law_holds(runner)


@both_modes
@every_operator
def test_an_error_upstream_names_the_source_and_carries_its_cause(rig: Any, batches: Any, build: Build, inline: bool) -> None:
    broken = ValueError("the wire broke")
    runner = rig.run(build, [*batches(1), broken], inline=inline)
    with pytest.raises(FlowError, match="operator 'gather' in the learner .* failed: ValueError: the wire broke") as caught:
        list(runner)
    assert caught.value.__cause__ is broken
    assert caught.value.operator == "gather"


@both_modes
@every_operator
def test_an_error_downstream_names_its_step_and_ends_everything(rig: Any, batches: Any, build: Build, inline: bool) -> None:
    broken = KeyError("no such column")

    def fail(item: Any) -> Any:
        raise broken

    runner = rig.run(lambda stream: build(stream).for_each(fail, name="the broken one"), batches(5), inline=inline)
    with pytest.raises(FlowError, match="operator 'the broken one'") as caught:
        next(runner)
    assert caught.value.__cause__ is broken
    assert list(runner) == []


@both_modes
@every_operator
def test_stopping_ends_the_stream_and_joins_its_threads(rig: Any, batches: Any, build: Build, inline: bool) -> None:
    runner = rig.run(build, batches(3), inline=inline, stays_open=True)
    next(runner)
    rig.learner.stop.set()
    assert len(list(runner)) <= 3
    runner.close()


@every_operator
def test_closing_in_the_middle_ends_everything(rig: Any, batches: Any, build: Build) -> None:
    runner = rig.run(build, batches(50), stays_open=True)
    next(runner)
    runner.close()
    assert list(runner) == []


@every_operator
def test_a_flow_can_be_described_and_drawn(rig: Any, batches: Any, build: Build) -> None:
    runner = rig.run(build, batches(2))
    list(runner)
    view = runner.describe()
    names = [node.name for node in runner.description.nodes]
    assert [node.name for node in view.nodes] == names
    assert json.loads(json.dumps(view.to_json()))["nodes"][-1]["items"] == 2
    drawn = view.draw()
    assert all(name in drawn for name in names)
    assert all(node.file == __file__ or "conftest" in node.file for node in view.nodes)


@both_modes
@every_operator
def test_state_can_be_saved_between_two_items_and_restored(rig: Any, batches: Any, build: Build, inline: bool) -> None:
    runner = rig.run(build, batches(4), inline=inline)
    next(runner)
    with runner.quiet():
        state = json.loads(json.dumps(runner.state()))
    again: Runner = rig.run(build, [], inline=inline)
    again.restore(state)
    assert list(again) == []
