"""Watch: a thread that knows at any time what this actor is assigned to, without polling."""

from __future__ import annotations

import contextlib
import threading

from rollstream.errors import StoreError
from rollstream.store import Address, Store
from rollstream.store.assignments import Assignment, Assignments
from rollstream.store.changes import Changes
from rollstream_service.lifecycle import Life

__all__ = ["Watch"]

BLOCK_S = 1.0
"""Longest wait for a change; bounds how long a stop takes."""
WAKE_WITHIN_S = 0.5


class Watch:
    """Blocks on the cell's stream of changes and re-reads the assignment when one comes."""

    def __init__(self, address: Address, *, life: Life) -> None:
        self._store = Store(address, clock=life.clock, name=f"{life.member}-watch")
        self._changes = Changes(self._store)
        self._waker = Store(address, clock=life.clock, deadline_s=WAKE_WITHIN_S, name=f"{life.member}-waker")
        self._assignments = Assignments(self._store)
        self._life = life
        self._changed = threading.Condition()
        self._assignment: Assignment | None = None
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Join the thread; `life.stopping` must be set."""
        with contextlib.suppress(StoreError):  # Redis is away: the thread ends by its own deadline
            Changes(self._waker).announce("member", self._life.member)
        self._waker.close()
        self._thread.join(timeout=5 * BLOCK_S)
        self._store.close()

    @property
    def assignment(self) -> Assignment | None:
        """What this actor is to do now."""
        with self._changed:
            return self._assignment

    def wait(self, *, other_than: Assignment | None) -> None:
        """Block until the assignment is another one than this, or the process is to stop."""
        with self._changed:
            while self._assignment == other_than and not self._life.stopping.is_set():
                self._changed.wait(BLOCK_S)

    def _run(self) -> None:
        self._life.health.expect("watch", within_s=90.0)
        last = "0"
        while not self._life.stopping.is_set():
            self._life.health.beat("watch")
            try:
                assignment = self._assignments.get(self._life.member)
                self._set(assignment)
                last = self._changes.wait(last, timeout_s=BLOCK_S)
            except StoreError as error:
                self._life.log.warning("cannot see the cell's changes", reason=str(error))
                self._life.stopping.wait(BLOCK_S)
        with self._changed:
            self._assignment = None
            self._changed.notify_all()  # also who has nothing to do waits

    def _set(self, assignment: Assignment | None) -> None:
        with self._changed:
            if assignment != self._assignment:
                self._assignment = assignment
                self._changed.notify_all()
