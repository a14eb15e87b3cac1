"""The bell: no wake-up is lost, and nobody who waits is needed to ring it."""

from __future__ import annotations

import threading

from rollstream.flow.bell import Bell
from rollstream.flow.bounded_queue import BoundedQueue
from rollstream.flow.ledger import Parcel


def test_a_wait_ends_with_the_change_that_was_waited_for() -> None:
    bell, changed = Bell(), threading.Event()
    seen: list[bool] = []
    waiting = threading.Thread(target=lambda: seen.append(bell.wait_for(changed.is_set, 10.0)))
    waiting.start()
    changed.set()
    bell.ring()
    waiting.join(10)
    assert seen == [True]


def test_a_wait_that_nothing_ends_says_so_after_its_timeout() -> None:
    bell = Bell()
    bell.ring()
    assert not bell.wait_for(lambda: False, 0.01)


def test_no_item_and_no_wake_up_is_lost_between_several_writers_and_a_reader() -> None:
    queue = BoundedQueue(2)
    items = 2_000

    def write(name: str) -> None:
        for number in range(items):
            queue.put(Parcel((name, number)))
            assert len(queue.parcels) <= queue.bound_items

    writers = [threading.Thread(target=write, args=(name,)) for name in "abc"]
    for writer in writers:
        writer.start()
    taken = [parcel.item for _ in range(3 * items) if (parcel := queue.get()) is not None]
    for writer in writers:
        writer.join(10)
    assert [[number for name, number in taken if name == writer] for writer in "abc"] == [list(range(items))] * 3


def test_a_closed_queue_takes_nothing() -> None:
    queue = BoundedQueue(2)
    queue.close()
    assert not queue.offer(Parcel("late"))
