"""Threads of a flow: a queue wakes everybody by events, and a thread that is stuck is named."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from rollstream.errors import DeadlineExceeded
from rollstream.flow.bounded_queue import BoundedQueue
from rollstream.flow.ledger import Parcel
from rollstream.flow.pump import Pump
from rollstream.flow.running import Running
from rollstream.flow.toy import ToyLearner


def test_a_queue_gives_what_it_holds_before_it_ends() -> None:
    queue = BoundedQueue(2)
    parcel = Parcel("item")
    assert queue.put(parcel)
    queue.end()
    assert queue.get() is parcel
    assert queue.get() is None


def test_a_closed_queue_lets_nobody_wait() -> None:
    queue = BoundedQueue(1)
    queue.put(Parcel("first"))
    refused: list[bool] = []
    writer = threading.Thread(target=lambda: refused.append(queue.put(Parcel("second"))))
    writer.start()
    queue.close()
    writer.join(10)
    assert refused == [False]
    assert queue.get() is None


def test_a_full_queue_holds_its_writer_until_there_is_room() -> None:
    queue = BoundedQueue(1)
    queue.put(Parcel("first"))
    writer = threading.Thread(target=lambda: queue.put(Parcel("second")))
    writer.start()
    first, second = queue.get(), queue.get()
    writer.join(10)
    assert first is not None
    assert second is not None
    assert (first.item, second.item) == ("first", "second")
    assert not queue.parcels


def test_a_thread_that_does_not_end_is_named() -> None:
    release = threading.Event()

    def stuck() -> Iterator[Parcel]:
        release.wait(10)
        yield Parcel("late")

    running = Running(ToyLearner(), inline=False, nodes=())
    pump = Pump("slow", stuck, running=running, deliver=lambda parcel: False, end=lambda: None)
    pump.start()
    with pytest.raises(DeadlineExceeded, match="thread 'flow-slow' did not end within 0.0 s of stopping"):
        pump.join(deadline_s=0.01)
    release.set()
    pump.join()
