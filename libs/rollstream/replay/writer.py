"""Writing to a table: rollouts in, rows and one log entry out, in one send.

    append(rollout) ─▶ room? ─▶ MSET rows of all environments + XADD one entry with all new items ─▶ acknowledged by the shard

Room is credit: a writer has at most `unread_entries` flushes (or `unread_bytes` of rows) which the shard has not admitted. When
the limiter holds inserts back the credit does not move, the writer waits, and after its deadline says which table, in which
state, and who waits for whom. Nothing of the writer's state changes before Redis has taken a flush, so `append` may be called
again with the same rollout after an error.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.clock import Clock, Deadline
from rollstream.errors import DeadlineExceeded, SchemaMismatch, StoreUnavailable
from rollstream.replay.log import InsertEntry, encode_insert
from rollstream.replay.open_rows import OpenRows
from rollstream.replay.position import read_position
from rollstream.replay.rules import ItemRule
from rollstream.replay.spec import TableSpec
from rollstream.spaces import Columns, Flag, Rollout
from rollstream.store import Address, Changes, ChunkWriter, Credit, Store, keys

__all__ = ["TableWriter", "WriteResult"]

_LOG = logging.getLogger("rollstream.replay")
REWOUND_AFTER_S = 2.0
"""Seconds without credit after which a writer asks whether Redis lost its entries (a restart loses up to a second of writes)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteResult:
    """What one `append` did: items and rows written, and seconds spent waiting for room."""

    items: int
    rows: int
    waited_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Flush:
    """One flush that the shard has not acknowledged."""

    sequence: int
    log_id: tuple[int, int]
    bytes: int


class TableWriter:
    """The writer of one actor to one shard of one table. Not thread-safe.

    Args:
        spec: must have the rows of the table as it was created; checked when writing starts.
        rule: how rows become items.
        environments: N; every rollout must have as many.
        writer_id: None takes a new one, as every incarnation of a writer must.
        deadline_s: how long `append` waits for room.
    """

    def __init__(
        self,
        store: Store,
        address: Address,
        *,
        table_id: str,
        shard: int = 0,
        spec: TableSpec,
        rule: ItemRule,
        environments: int,
        clock: Clock,
        writer_id: int | None = None,
        deadline_s: float = 60.0,
    ) -> None:
        self.table_id = table_id
        self.shard = shard
        self._store = store
        self._clock = clock
        self._spec = spec
        self._environments = environments
        self._deadline_s = deadline_s
        self._rows = OpenRows(spec.row_spec.dtype, environments=environments, rule=rule, chunk_rows=spec.chunk_rows)
        self._prefix = keys.chunk_prefix(table_id, shard)
        self._log_key = keys.table_log(table_id, shard)
        self._chunks = ChunkWriter(address, clock=clock)
        self._credit = Credit(
            store,
            credit_key=keys.table_credit(table_id, shard),
            wake_key=lambda writer: keys.table_wake(table_id, shard, writer),
        )
        self.writer_id = writer_id if writer_id is not None else _new_writer_id(store)
        self._sequence = 0
        self._in_flight: deque[_Flush] = deque()
        self._next_observation: Columns = {}
        self._checked = False

    def append(self, rollout: Rollout, *, deadline_s: float | None = None, beyond_bound: bool = False) -> WriteResult:
        """Write the rows of a rollout and the items that became complete.

        Args:
            beyond_bound: write without waiting for room: for the last rollout of a writer that has to go, so that it is not lost.

        Raises:
            DeadlineExceeded: no room within the deadline; nothing was written, the call may be repeated.
            SchemaMismatch: the rows are not those of the table.
            StoreUnavailable: Redis did not take them; the call may be repeated.
        """
        self._require_fitting(rollout)
        waited_s = 0.0
        if not (beyond_bound and self._table_exists()):
            waited_s = self.wait_for_room(deadline_s=self._deadline_s if deadline_s is None else deadline_s)
        items = self._write(rollout.rows, rollout.offsets, closing=False)
        self._next_observation = rollout.next_observation
        return WriteResult(items=items, rows=len(rollout.rows), waited_s=waited_s)

    def has_room(self) -> bool:
        """Whether `append` would not have to wait now."""
        if not self._table_exists():
            return False
        if self._has_room():
            return True
        self._settle(self._credit.acknowledged(self.writer_id))
        return self._has_room()

    def wait_for_room(self, *, deadline_s: float) -> float:
        """Wait until `append` need not; returns the seconds that it took.

        Raises:
            DeadlineExceeded: names the table, the state of its limiter, and who waits for whom.
        """
        deadline = Deadline(self._clock, after_s=deadline_s)
        if not self._table_exists():
            self._wait_for_table(deadline)
        if self._has_room():
            return deadline.waited_s()
        return self._wait_for(self._needed_sequence, deadline=deadline, what="room for its next rows")

    def flush(self, *, deadline_s: float) -> None:
        """Wait until the shard has admitted everything that was written.

        Raises:
            DeadlineExceeded: as `wait_for_room`. What was written is safe in Redis in any case.
        """
        if self._in_flight:
            deadline = Deadline(self._clock, after_s=deadline_s)
            self._wait_for(lambda: self._sequence, deadline=deadline, what="its rows to be admitted")

    def close(self) -> None:
        """End all open windows, so that no row is without its item, and let go of the rows. Waits for nobody.

        An environment that was in the middle of an episode gets one more row: the observation that followed its last action,
        flagged FINAL and TRUNCATED, for this writer will not see how the episode goes on.
        """
        if self._sequence:
            rows, offsets = self._closing_rows()
            self._write(rows, offsets, closing=True)
        self._chunks.close()

    # --- writing ---------------------------------------------------------------------------------------------------------

    def _write(self, rows: npt.NDArray[np.void], offsets: npt.NDArray[np.int64], *, closing: bool) -> int:
        cut = self._rows.cut(rows, offsets, closing=closing)
        entry = InsertEntry(
            writer=self.writer_id,
            sequence=self._sequence + 1,
            default_priority=True,
            keep=cut.keep,
            end=cut.end,
            start=cut.start,
            env=cut.item_env,
            length=cut.length,
            priority=np.zeros(len(cut.start), np.float32),
        )
        command = ("XADD", self._log_key, "*", "i", encode_insert(entry))
        reply = self._chunks.write(self._prefix, self.writer_id, cut.chunk_env, cut.chunk_no, cut.payload, then=[command])
        self._sequence += 1
        self._in_flight.append(_Flush(sequence=self._sequence, log_id=_stream_id(reply[0]), bytes=cut.payload.nbytes))
        self._rows.advance(cut)
        return len(cut.start)

    def _closing_rows(self) -> tuple[npt.NDArray[np.void], npt.NDArray[np.int64]]:
        """One row for each environment in the middle of an episode; none when the rows hold no observations."""
        dtype = self._spec.row_spec.dtype
        names = [name for name in dtype.names or () if name in self._next_observation]
        middle = np.flatnonzero(~self._rows.at_episode_end()) if names else np.zeros(0, np.int64)
        rows = np.zeros(len(middle), dtype)
        rows["flags"] = Flag.FINAL | Flag.TRUNCATED
        for name in names:
            rows[name] = self._next_observation[name][middle]
        return rows, np.searchsorted(middle, np.arange(self._environments + 1)).astype(np.int64)

    def _require_fitting(self, rollout: Rollout) -> None:
        if rollout.rows.dtype != self._spec.row_spec.dtype:
            raise SchemaMismatch(
                f"rows for table {self.table_id} have the columns {rollout.rows.dtype.descr}, the table has "
                f"{self._spec.row_spec.dtype.descr}; use the table's spec to make rows"
            )
        if len(rollout.offsets) != self._environments + 1:
            raise SchemaMismatch(
                f"rollout has {len(rollout.offsets) - 1} environments where the writer was made for {self._environments}"
            )

    def _table_exists(self) -> bool:
        """Whether the table was created; checks once that it has our rows."""
        if not self._checked:
            stored: Any = self._store.run("read the table's spec", lambda client: client.hget(keys.tables(), self.table_id))
            if stored is None:
                return False
            there = TableSpec.model_validate_json(stored)
            self._spec.row_spec.require_equal(there.row_spec, ours="this writer", theirs=f"table {self.table_id}")
            self._checked = True
        return True

    def _wait_for_table(self, deadline: Deadline) -> None:
        changes = Changes(self._store)
        while True:
            seen = changes.latest()
            if self._table_exists():
                return
            if deadline.passed():
                raise DeadlineExceeded(
                    f"table {self.table_id} does not exist after {deadline.waited_s():.1f} s; writer {self.writer_id} waits for "
                    "the learner to create it"
                )
            changes.wait(seen, timeout_s=deadline.remaining_s())

    # --- credit ----------------------------------------------------------------------------------------------------------

    def _has_room(self) -> bool:
        return not self._in_flight or self._in_flight[0].sequence > self._needed_sequence()

    def _needed_sequence(self) -> int:
        """The sequence number that must be acknowledged before the next flush."""
        total_bytes = 0
        for entries, flush in enumerate(reversed(self._in_flight), start=1):
            total_bytes += flush.bytes
            if entries >= self._spec.unread_entries or total_bytes > self._spec.unread_bytes:
                return flush.sequence
        return 0

    def _settle(self, acknowledged: int) -> None:
        while self._in_flight and self._in_flight[0].sequence <= acknowledged:
            self._in_flight.popleft()

    def _wait_for(self, needed: Callable[[], int], *, deadline: Deadline, what: str) -> float:
        while True:
            sequence = needed()
            slice_s = min(REWOUND_AFTER_S, deadline.remaining_s())
            try:
                self._settle(self._credit.wait(self.writer_id, at_least=sequence, deadline_s=slice_s))
            except StoreUnavailable as error:
                if not deadline.passed():
                    continue
                raise DeadlineExceeded(
                    f"table {self.table_id} shard {self.shard}: writer {self.writer_id} waited {deadline.waited_s():.1f} s for "
                    f"{what} while Redis is away: {error}"
                ) from error
            if not self._in_flight or self._in_flight[0].sequence > sequence:
                return deadline.waited_s()
            if deadline.passed():
                raise DeadlineExceeded(self._why(what, deadline.waited_s()))
            self._forget_lost_entries()

    def _forget_lost_entries(self) -> None:
        """After a crash Redis may have lost the last second of its log: what is no longer there is never acknowledged."""
        info: Any = self._store.run("look at the end of the table's log", lambda client: _last_id(client, self._log_key))
        lost = [flush for flush in self._in_flight if flush.log_id > info]
        if lost:
            _LOG.warning(
                "table %s: Redis lost %d flushes of writer %d (%d bytes of rows)",
                self.table_id,
                len(lost),
                self.writer_id,
                sum(flush.bytes for flush in lost),
            )
            self._in_flight = deque(flush for flush in self._in_flight if flush.log_id <= info)

    def _why(self, what: str, waited_s: float) -> str:
        position = read_position(self._store, table_id=self.table_id, shard=self.shard)
        who = position.waits if position is not None and position.waits else "the replay shard to read its log; is it running?"
        counts = "" if position is None else f" (items {position.size}, inserted {position.inserted}, sampled {position.sampled})"
        return (
            f"table {self.table_id} shard {self.shard}: writer {self.writer_id} waited {waited_s:.1f} s for {what}; "
            f"{len(self._in_flight)} of {self._spec.unread_entries} flushes are not admitted. It waits for: {who}{counts}"
        )


def _new_writer_id(store: Store) -> int:
    reply: Any = store.run("take a writer id", lambda client: client.incr(keys.writers()))
    return int(reply) & 0xFFFFFFFF


def _last_id(client: Any, log_key: str) -> tuple[int, int]:
    if not client.exists(log_key):
        return (0, 0)
    return _stream_id(client.xinfo_stream(log_key)["last-generated-id"])


def _stream_id(text: bytes | str) -> tuple[int, int]:
    milliseconds, number = (text.decode() if isinstance(text, bytes) else text).split("-")
    return int(milliseconds), int(number)
