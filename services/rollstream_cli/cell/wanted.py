"""Watches how many actors the cell should have: `rollstream scale`, the REST API and the autoscaler write it to Redis."""

from __future__ import annotations

import threading
from collections.abc import Callable

from rollstream.clock import Clock
from rollstream.errors import StoreError
from rollstream.store import Address, Store, keys
from rollstream.store.changes import Changes

__all__ = ["WantedActors"]

WAIT_S = 5.0
"""How long one wait for a change lasts; a missed wake-up costs at most this."""
AGAIN_AFTER_S = 1.0
WAKE_WITHIN_S = 0.5


class WantedActors:
    """A thread that calls `on_change(actors)` with the wanted number, each time something in the cell changes."""

    def __init__(self, address: Address, *, clock: Clock, on_change: Callable[[int], None]) -> None:
        self._store = Store(address, clock=clock, deadline_s=10.0, name="rollstream-cli")
        self._changes = Changes(self._store)
        self._waker = Store(address, clock=clock, deadline_s=WAKE_WITHIN_S, name="rollstream-cli-waker")
        self._on_change = on_change
        self._seen = "0-0"
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="wanted-actors", daemon=True)

    def start(self, actors: int) -> None:
        """Write `actors` as what is wanted now, then watch."""
        self._seen = self._changes.latest()
        self._store.run("set the number of actors", lambda redis: redis.set(keys.wanted_actors(), actors))
        self._thread.start()

    def wake_everybody(self) -> None:
        """Let all members of the cell look around now: one that was asked to stop need not wait for its next look."""
        try:
            Changes(self._waker).announce("cell", "stopping")
        except StoreError:
            pass  # Redis is gone or busy: they look around by themselves

    def stop(self) -> None:
        """End the thread: at once when Redis answers, after one wait otherwise."""
        self._stopping.set()
        if self._thread.ident is not None:
            self.wake_everybody()
            self._thread.join(timeout=2 * WAIT_S)
        self._store.close()
        self._waker.close()

    def _run(self) -> None:
        last = self._seen
        while not self._stopping.is_set():
            try:
                last = self._changes.wait(last, timeout_s=WAIT_S)
                if self._stopping.is_set():
                    return
                wanted = self._store.run("read the number of actors", lambda redis: redis.get(keys.wanted_actors()))
            except StoreError:
                self._stopping.wait(AGAIN_AFTER_S)  # the server is being restarted
                continue
            if wanted is not None:
                self._on_change(max(0, int(wanted)))
