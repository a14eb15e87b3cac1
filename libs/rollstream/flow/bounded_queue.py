"""The queue between two threads of a flow: bounded, woken by events alone, and closed from either side."""

from __future__ import annotations

import threading
from collections import deque

from rollstream.flow.bell import Bell
from rollstream.flow.ledger import Parcel

__all__ = ["BoundedQueue"]


class BoundedQueue:
    """Parcels in order, from one or more threads to one.

    `end` says that nothing more comes: what is inside is still taken out. `close` is for stopping: everybody returns at once.

    Attributes:
        parcels: what is inside; to be looked at only.
    """

    def __init__(self, bound_items: int) -> None:
        self.bound_items = bound_items
        self.parcels: deque[Parcel] = deque()
        self._putting = threading.Lock()
        self._bell = Bell()
        self._ended = False
        self._closed = False

    def offer(self, parcel: Parcel) -> bool:
        """Put `parcel` in if there is room now; whether there was."""
        parcels = self.parcels
        with self._putting:  # the last place is given away once
            if self._closed or len(parcels) >= self.bound_items:
                return False
            parcels.append(parcel)
        self._bell.ring()
        return True

    def put(self, parcel: Parcel) -> bool:
        """Wait for room and put `parcel` in; False when the queue was closed."""
        while not self.offer(parcel):
            self._bell.wait_for(self._has_room)
            if self._closed:
                return False
        return True

    def get(self) -> Parcel | None:
        """Wait for the next parcel; None when there will be none."""
        parcels = self.parcels
        if not parcels:
            self._bell.wait_for(self._has_news)
        if self._closed or not parcels:
            return None
        parcel = parcels.popleft()
        self._bell.ring()
        return parcel

    def wait(self, *, timeout_s: float) -> bool:
        """Wait until `get` would return at once; False when `timeout_s` passed first."""
        return self._bell.wait_for(self._has_news, timeout_s)

    def end(self) -> None:
        """Nothing more will be put in."""
        self._ended = True
        self._bell.ring()

    def close(self) -> None:
        """Nobody waits any longer."""
        self._closed = True
        self._bell.ring()

    def _has_room(self) -> bool:
        return self._closed or len(self.parcels) < self.bound_items

    def _has_news(self) -> bool:
        return bool(self.parcels) or self._ended or self._closed
