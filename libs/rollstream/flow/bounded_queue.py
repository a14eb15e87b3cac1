"""The queue between two threads of a flow: bounded, woken by events alone, and closed from either side."""

from __future__ import annotations

import threading
from collections import deque

from rollstream.flow.ledger import Parcel

__all__ = ["BoundedQueue"]


class BoundedQueue:
    """Parcels in order.

    `end` says that nothing more comes: what is inside is still taken out. `close` is for stopping: everybody returns at once.
    """

    def __init__(self, bound_items: int) -> None:
        self.bound_items = bound_items
        self._parcels: deque[Parcel] = deque()
        self._changed = threading.Condition()
        self._ended = False
        self._closed = False

    def __len__(self) -> int:
        return len(self._parcels)

    def put(self, parcel: Parcel) -> bool:
        """Wait for room and put `parcel` in; False when the queue was closed."""
        with self._changed:
            while len(self._parcels) >= self.bound_items and not self._closed:
                self._changed.wait()
            if self._closed:
                return False
            self._parcels.append(parcel)
            self._changed.notify_all()
            return True

    def get(self) -> Parcel | None:
        """Wait for the next parcel; None when there will be none."""
        with self._changed:
            while not self._parcels and not self._ended and not self._closed:
                self._changed.wait()
            if self._closed or not self._parcels:
                return None
            self._changed.notify_all()
            return self._parcels.popleft()

    def wait(self, *, timeout_s: float) -> bool:
        """Wait until `get` would return at once; False when `timeout_s` passed first."""
        with self._changed:
            return self._changed.wait_for(lambda: bool(self._parcels) or self._ended or self._closed, timeout_s)

    def end(self) -> None:
        """Nothing more will be put in."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def close(self) -> None:
        """Nobody waits any longer."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
