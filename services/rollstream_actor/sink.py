"""Patient table writing: a full table makes an actor wait as long as it must, visibly, and never lose a rollout."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from rollstream.errors import DeadlineExceeded
from rollstream.metrics import Waits
from rollstream.replay import TableWriter
from rollstream.spaces import Rollout
from rollstream_service.lifecycle import Life

__all__ = ["PatientSink"]

LOOK_S = 1.0
"""How often a waiting writer looks whether the process is to stop."""


class PatientSink:
    """A table writer that waits for room until there is some; no longer wanted, it writes what it has and lets go."""

    def __init__(self, writer: TableWriter, *, life: Life, waits: Waits, table: str, wanted: Callable[[], bool]) -> None:
        self._writer = writer
        self._life = life
        self._waits = waits
        self._table = table
        self._wanted = wanted

    def append(self, rollout: Rollout) -> Any:
        """Write `rollout`, after waiting for room, and for Redis to have memory. Its result tells of all the seconds waited."""
        clock = self._life.clock
        waited_s = 0.0
        while True:
            if self._wanted() and not self._writer.has_room():
                began_s = clock.monotonic_s()
                with self._waits.waiting(who=self._life.member, for_whom=f"table {self._table} (its limiter or its shard)"):
                    self._wait()
                waited_s += clock.monotonic_s() - began_s
            wanted = self._wanted()
            try:
                written = self._writer.append(rollout, deadline_s=LOOK_S if wanted else None, beyond_bound=not wanted)
                return replace(written, waited_s=written.waited_s + waited_s)
            except DeadlineExceeded:
                if not wanted:
                    raise
                self._life.health.beat("work")

    def has_room(self) -> bool:
        return self._writer.has_room()

    def close(self) -> None:
        """Write what is pending."""
        self._writer.close()

    def _wait(self) -> None:
        while self._wanted():
            self._life.health.beat("work")
            try:
                self._writer.wait_for_room(deadline_s=LOOK_S)
            except DeadlineExceeded:
                continue
            return
