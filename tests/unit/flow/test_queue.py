"""Queues between branches: bounded, in order, and with an end and errors that reach the other side."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from rollstream.errors import DeadlineExceeded, FlowError
from rollstream.flow import Queue, Stream, union, update


def through(
    queue: Queue[Any], *, mode: Any = "as_ready", weights: Any = None, drained: Any = lambda stream: stream, beside: Any = None
) -> Any:
    def build(stream: Stream[Any]) -> Stream[Any]:
        filled = stream.enqueue(queue)
        out = drained(queue.dequeue())
        return union(filled if beside is None else filled.for_each(beside), out, mode=mode, weights=weights, emit=out)

    return build


def test_items_beside_the_queue_account_for_nothing_and_those_in_it_for_all(rig: Any, batches: Any) -> None:
    seen: list[int] = []

    def note(batch: Any) -> Any:
        seen.append(batch.sequence)
        return batch

    queue: Queue[Any] = Queue(name="train", bound_items=2)
    runner = rig.run(through(queue, drained=lambda stream: stream.for_each(update()), beside=note), batches(6))
    assert [item.sequence for item in runner] == seen == [1, 2, 3, 4, 5, 6]
    assert rig.counters.value("env_steps_trained") == rig.counters.value("env_steps_sampled") == 24
    assert [batch.sequence for batch in rig.edge.acknowledged] == [1, 2, 3, 4, 5, 6]


def test_a_message_in_a_queue_is_not_acknowledged_before_it_was_used(rig: Any, batches: Any) -> None:
    queue: Queue[Any] = Queue(name="train", bound_items=3)
    runner = rig.run(through(queue), batches(9), stays_open=True)
    next(runner)
    rig.learner.stop.wait(0.05)
    assert [batch.sequence for batch in rig.edge.acknowledged] == [1]
    assert rig.edge.given <= 1 + 3 + 1
    assert rig.law_holds(runner)
    runner.close()


def test_a_full_queue_that_nobody_drains_ends_with_an_error_that_names_both_sides(rig: Any, batches: Any) -> None:
    entered = threading.Event()

    def stuck(batch: Any) -> Any:
        entered.set()
        for _ in range(200):  # until the flow has failed, but not for ever
            rig.learner.clock.advance(1.0)
            if rig.learner.stop.wait(0.05) or rig.learner.clock.monotonic_s() > 100:
                break
        return batch

    queue: Queue[Any] = Queue(name="train", bound_items=1, deadline_s=5.0)
    runner = rig.run(through(queue, drained=lambda stream: stream.for_each(stuck)), batches(9))
    with pytest.raises(DeadlineExceeded, match=r"enqueue_train .* has waited \d+ s for room in queue 'train' \(1 items\)"):
        list(runner)
    assert entered.is_set()


def test_a_branch_that_ends_early_ends_those_that_fill_its_queue(rig: Any, batches: Any) -> None:
    queue: Queue[Any] = Queue(name="train", bound_items=2)
    runner = rig.run(through(queue, drained=lambda stream: stream.take(2)), batches(30))
    assert len(list(runner)) == 2
    runner.close()
    assert rig.law_holds(runner)


@pytest.mark.parametrize("mode", ["as_ready", "round_robin"])
def test_an_error_beside_the_queue_reaches_the_puller_with_its_own_cause(rig: Any, batches: Any, mode: str) -> None:
    broken = ValueError("broadcast failed")

    def fail(batch: Any) -> Any:
        raise broken

    queue: Queue[Any] = Queue(name="train", bound_items=2)
    with pytest.raises(FlowError, match="operator 'fail'") as caught:
        list(rig.run(through(queue, mode=mode, beside=fail), batches(9), stays_open=True))
    assert caught.value.__cause__ is broken


@pytest.mark.parametrize("inline", [False, True])
def test_in_one_thread_an_empty_queue_lets_the_branch_that_fills_it_go_on(rig: Any, batches: Any, inline: bool) -> None:
    queue: Queue[Any] = Queue(name="train", bound_items=8)
    joined = through(queue, mode="round_robin", drained=lambda stream: stream.batch(steps=12))
    runner = rig.run(joined, batches(9), inline=inline)
    assert [item.env_steps for item in runner] == [12, 12, 12]
    assert rig.law_holds(runner)


def test_in_one_thread_a_full_queue_is_told_at_once(rig: Any, batches: Any) -> None:
    queue: Queue[Any] = Queue(name="train", bound_items=2)
    with pytest.raises(DeadlineExceeded, match=r"queue 'train' is full \(2 items\), and in one thread nobody else takes"):
        list(rig.run(through(queue, mode="round_robin", weights=[3, 1]), batches(9)))


def test_several_branches_may_fill_one_queue_and_it_ends_with_the_last(rig: Any, batches: Any) -> None:
    queue: Queue[Any] = Queue(name="train", bound_items=2)

    def build(stream: Stream[Any]) -> Stream[Any]:
        first, second = stream.duplicate(2)
        drained = queue.dequeue()
        return union(first.take(1).enqueue(queue), second.enqueue(queue), drained, emit=drained)

    runner = rig.run(build, batches(5))
    assert sorted(item.sequence for item in runner) == [1, 1, 2, 3, 4, 5]
    assert rig.law_holds(runner)
