"""A channel: the queue behind `enqueue` and `dequeue` at work. Bounded; whoever waits at it is woken by events and named."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from rollstream.errors import DeadlineExceeded
from rollstream.flow.bell import Bell
from rollstream.flow.ledger import Parcel
from rollstream.flow.meter import Meter
from rollstream.flow.node import Node

if TYPE_CHECKING:
    from rollstream.flow.running import Running

__all__ = ["Channel"]

SLICE_S = 0.5
"""How often a wait looks up."""


class Channel:
    """Parcels in order, from one or more writers to one reader.

    Both ends may lie in one thread (a union in turn). Nobody can be waited for there: who finds the channel empty then drives the
    branch that fills it, and one that finds it full is told so at once.
    """

    def __init__(self, running: Running, *, name: str, bound_items: int, deadline_s: float) -> None:
        self.bound_items = bound_items
        self._running = running
        self._name = name
        self._deadline_s = deadline_s
        self._parcels: deque[Parcel] = deque()
        self._putting = threading.Lock()
        self._bell = Bell()
        self._writers = 0
        self._reader_gone = False
        self._closed = False
        self._taken = 0
        self._drive: Callable[[], bool] | None = None

    def add_writer(self) -> None:
        """One more operator fills the channel; called before anything runs."""
        self._writers += 1

    def in_one_thread(self, drive: Callable[[], bool]) -> None:
        """Both ends are pulled by the calling thread; `drive` lets the branch that fills the channel go on by one item."""
        self._drive = drive

    def has_room(self) -> bool:
        """Whether `put` would not wait."""
        return len(self._parcels) < self.bound_items or self._reader_gone or self._closed

    def has_items(self) -> bool:
        """Whether `get` would not wait."""
        return bool(self._parcels) or self._is_over()

    def put(self, parcel: Parcel, node: Node, meter: Meter) -> bool:
        """Wait for room and put `parcel` in; False when nobody will take it.

        Raises:
            DeadlineExceeded: nothing was taken for `deadline_s`, or nobody can take anything; names both sides.
        """
        if not self.has_room():
            self._wait_for_room(node, meter)
        parcels = self._parcels
        with self._putting:  # a reader that leaves meanwhile sees the parcel, or the writer sees that it left
            if self._reader_gone or self._closed:
                return False
            parcels.append(parcel)
        meter.depth_items = len(parcels)
        self._bell.ring()
        return True

    def get(self, node: Node, meter: Meter) -> Parcel | None:
        """Wait for the next parcel; None when there will be none."""
        parcels = self._parcels
        while not parcels and not self._is_over():
            if self._drive is None or not self._drive():
                self._wait_for_items(node, meter)
                break
        if self._closed:
            return None
        try:
            parcel = parcels.popleft()
        except IndexError:  # over, or left meanwhile by another thread
            return None
        self._taken += 1
        meter.depth_items = len(parcels)
        self._bell.ring()
        return parcel

    def writer_ended(self) -> None:
        """One of those who fill the channel has ended; after the last, `get` gives what is left and ends."""
        with self._putting:
            self._writers -= 1
        self._bell.ring()

    def reader_ended(self) -> None:
        """Nobody takes anything any more: those who fill the channel end, and what is in it has gone its way."""
        with self._putting:
            self._reader_gone = True
        self._bell.ring()
        with suppress(IndexError):
            while True:
                self._running.ledger.finish(self._parcels.popleft())

    def close(self) -> None:
        """The flow ends: nobody waits any longer."""
        self._closed = True
        self._bell.ring()

    def _is_over(self) -> bool:
        return self._closed or self._writers <= 0

    def _wait_for_room(self, node: Node, meter: Meter) -> None:
        running = self._running
        if self._drive is not None:
            raise DeadlineExceeded(
                f"{node}: queue {self._name!r} is full ({self.bound_items} items), and in one thread nobody else takes anything "
                "out; give the branches of the union weights that match, or mode='as_ready'"
            )
        with running.waits(node, meter, f"room in queue {self._name}") as waiting:
            taken, since_s = self._taken, running.side.clock.monotonic_s()
            while not self._bell.wait_for(self.has_room, SLICE_S) and not running.stopping():
                waiting.look_up()
                now_s = running.side.clock.monotonic_s()
                if self._taken != taken:
                    taken, since_s = self._taken, now_s
                elif now_s - since_s >= self._deadline_s:
                    raise DeadlineExceeded(
                        f"{node} has waited {now_s - since_s:.0f} s for room in queue {self._name!r} ({self.bound_items} items), of "
                        "which dequeue takes nothing; raise its deadline_s if the steps behind dequeue are that slow"
                    )

    def _wait_for_items(self, node: Node, meter: Meter) -> None:
        running = self._running
        with running.waits(node, meter, f"items of queue {self._name}") as waiting:
            while not self._bell.wait_for(self.has_items, SLICE_S) and not running.stopping():
                waiting.look_up()
