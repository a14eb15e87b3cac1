"""Room: how far a writer may run ahead of its shard, and how it waits for more, visibly and never for ever.

    written ──▶ in flight ──▶ admitted by the shard (credit)
                '--------- at most `unread_entries` flushes and `unread_bytes` of rows

When the limiter holds inserts back the credit does not move and the writer waits. Its wait has a name from the first moment, is
logged after ten seconds, and ends with an error that says which table, in which state, and who waits for whom.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rollstream.clock import Deadline
from rollstream.errors import DeadlineExceeded, StoreUnavailable
from rollstream.metrics import Waits
from rollstream.replay.position import read_position
from rollstream.store import Credit, PendingWrite, Store, keys

__all__ = ["Room"]

_LOG = logging.getLogger("rollstream.replay")
REWOUND_AFTER_S = 2.0
"""Seconds without credit after which a writer asks whether Redis lost its entries (a restart loses up to a second of writes)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Flush:
    """One flush that the shard has not acknowledged."""

    sequence: int
    write: PendingWrite
    bytes: int

    def is_after(self, log_id: tuple[int, int]) -> bool:
        """Whether its log entry, as far as Redis is known to have it, comes after that one."""
        return self.write.replies is not None and _stream_id(self.write.replies[0]) > log_id


class Room:
    """What one writer has in flight to one shard of a table.

    Args:
        unread_entries, unread_bytes: bounds; one flush is always allowed.
        while_waiting: called where there is no room, for a shard that works in this thread (`LocalReplay`): with False to let it
            admit and acknowledge, with True when that was not enough and the writer is about to wait; then it may raise.
    """

    def __init__(
        self,
        store: Store,
        *,
        table_id: str,
        shard: int,
        writer: int,
        unread_entries: int,
        unread_bytes: int,
        waits: Waits,
        while_waiting: Callable[[bool], None] | None = None,
    ) -> None:
        self._store = store
        self._table_id = table_id
        self._shard = shard
        self._writer = writer
        self._unread_entries = unread_entries
        self._unread_bytes = unread_bytes
        self._waits = waits
        self._while_waiting = while_waiting
        self._log_key = keys.table_log(table_id, shard)
        self._credit = Credit(
            store,
            credit_key=keys.table_credit(table_id, shard),
            wake_key=lambda writer: keys.table_wake(table_id, shard, writer),
        )
        self._in_flight: deque[_Flush] = deque()
        self._bytes = 0

    def take(self, *, sequence: int, write: PendingWrite, flush_bytes: int) -> None:
        """A flush was sent off."""
        self._in_flight.append(_Flush(sequence=sequence, write=write, bytes=flush_bytes))
        self._bytes += flush_bytes

    def there(self) -> bool:
        """Whether the next flush need not wait, as far as is known here."""
        return len(self._in_flight) < self._unread_entries and (not self._in_flight or self._bytes <= self._unread_bytes)

    def look(self) -> bool:
        """Whether the next flush need not wait; asks Redis when it seems so."""
        if not self.there():
            self._let_work()
            self._settle(self._credit.acknowledged(self._writer))
        return self.there()

    def wait(self, deadline: Deadline) -> None:
        """Wait until the next flush need not.

        Raises:
            DeadlineExceeded: names the table, the state of its limiter, and who waits for whom.
        """
        if not self.there():
            self._wait_for(self._needed_sequence, deadline=deadline, what="room for its next rows")

    def wait_until_admitted(self, deadline: Deadline) -> None:
        """Wait until the shard has admitted everything; raises as `wait`."""
        if self._in_flight:
            newest = self._in_flight[-1].sequence
            self._wait_for(lambda: newest, deadline=deadline, what="its rows to be admitted")

    def _needed_sequence(self) -> int:
        """The sequence number that must be acknowledged before the next flush."""
        total_bytes = 0
        for entries, flush in enumerate(reversed(self._in_flight), start=1):
            total_bytes += flush.bytes
            if entries >= self._unread_entries or total_bytes > self._unread_bytes:
                return flush.sequence
        return 0

    def _is_done(self, sequence: int) -> bool:
        return not self._in_flight or self._in_flight[0].sequence > sequence

    def _let_work(self) -> None:
        if self._while_waiting is not None:
            self._while_waiting(False)

    def _settle(self, acknowledged: int) -> None:
        while self._in_flight and self._in_flight[0].sequence <= acknowledged:
            self._bytes -= self._in_flight.popleft().bytes

    def _wait_for(self, needed: Callable[[], int], *, deadline: Deadline, what: str) -> None:
        with self._waits.waiting(
            who=f"writer {self._writer}", for_whom=f"table {self._table_id} shard {self._shard} (its limiter or its shard)"
        ) as wait:
            while True:
                sequence = needed()
                if self._while_waiting is not None:
                    self._let_work()
                    self._settle(self._credit.acknowledged(self._writer))
                    if self._is_done(sequence):
                        return
                    self._while_waiting(True)
                slice_s = min(REWOUND_AFTER_S, deadline.remaining_s())
                try:
                    self._settle(self._credit.wait(self._writer, at_least=sequence, deadline_s=slice_s))
                except StoreUnavailable as error:
                    if not deadline.passed():
                        wait.still()
                        continue
                    raise DeadlineExceeded(
                        f"table {self._table_id} shard {self._shard}: writer {self._writer} waited {deadline.waited_s():.1f} s for "
                        f"{what} while Redis is away: {error}"
                    ) from error
                if self._is_done(sequence):
                    return
                if deadline.passed():
                    raise DeadlineExceeded(self._why(what, deadline.waited_s()))
                wait.still()
                self._forget_lost_entries()

    def _forget_lost_entries(self) -> None:
        """After a crash Redis may have lost the last second of its log: what is no longer there is never acknowledged."""
        info: Any = self._store.run("look at the end of the table's log", lambda client: _last_id(client, self._log_key))
        lost = [flush for flush in self._in_flight if flush.is_after(info)]
        if lost:
            lost_bytes = sum(flush.bytes for flush in lost)
            _LOG.warning(
                "table %s: Redis lost %d flushes of writer %d (%d bytes of rows)",
                self._table_id,
                len(lost),
                self._writer,
                lost_bytes,
            )
            self._bytes -= lost_bytes
            self._in_flight = deque(flush for flush in self._in_flight if not flush.is_after(info))

    def _why(self, what: str, waited_s: float) -> str:
        position = read_position(self._store, table_id=self._table_id, shard=self._shard)
        who = position.waits if position is not None and position.waits else "the replay shard to read its log; is it running?"
        counts = "" if position is None else f" (items {position.size}, inserted {position.inserted}, sampled {position.sampled})"
        return (
            f"table {self._table_id} shard {self._shard}: writer {self._writer} waited {waited_s:.1f} s for {what}; "
            f"{len(self._in_flight)} of {self._unread_entries} flushes are not admitted. It waits for: {who}{counts}"
        )


def _last_id(client: Any, log_key: str) -> tuple[int, int]:
    if not client.exists(log_key):
        return (0, 0)
    return _stream_id(client.xinfo_stream(log_key)["last-generated-id"])


def _stream_id(text: bytes | str) -> tuple[int, int]:
    milliseconds, number = (text.decode() if isinstance(text, bytes) else text).split("-")
    return int(milliseconds), int(number)
