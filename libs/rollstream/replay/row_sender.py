"""Sending one flush: chunks and log entry, until Redis has taken them.

Redis without memory is back-pressure, not a fault: the sender waits, visibly, for others to free some, and says after its deadline
what to do. A flush that could not be sent may be sent again at any time: the same keys, the same sequence number.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from rollstream.clock import Clock, Deadline
from rollstream.errors import DeadlineExceeded, StoreUnavailable
from rollstream.metrics import Waits
from rollstream.replay.encoding import Codec
from rollstream.replay.log import InsertEntry, encode_insert
from rollstream.replay.spec import TableSpec
from rollstream.store import Address, ChunkWriter, PendingWrite, Store, is_out_of_memory, keys

__all__ = ["Parcel", "RowSender"]

T = TypeVar("T")
TRY_S = 1.0
"""How long one attempt goes on by itself, before the sender looks at its own deadline."""
PAUSE_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Parcel:
    """What one flush sends: chunks [K] (packed rows, or the values that encode them), and the log entry."""

    env: npt.NDArray[np.uint32]
    chunk_no: npt.NDArray[np.uint64]
    payload: npt.NDArray[np.uint8]
    values: list[bytes] | None
    entry: InsertEntry

    @property
    def stored_bytes(self) -> int:
        return self.payload.nbytes if self.values is None else sum(map(len, self.values))


class RowSender:
    """One writer's way of rows to one shard of a table. Not thread-safe.

    Attributes:
        waited_s: seconds spent waiting for Redis to have memory, or to answer.

    Args:
        away_s: how long Redis may be away before an error says so.
    """

    def __init__(
        self,
        store: Store,
        address: Address,
        *,
        spec: TableSpec,
        table_id: str,
        shard: int,
        writer: int,
        clock: Clock,
        waits: Waits,
        away_s: float = 30.0,
    ) -> None:
        self._store = store
        self._where = f"table {table_id} shard {shard}: writer {writer}"
        self._writer = writer
        self._clock = clock
        self._waits = waits
        self._away_s = away_s
        self._prefix = keys.chunk_prefix(table_id, shard)
        self._log_key = keys.table_log(table_id, shard)
        self._codec = None if spec.resolved_encoding == "raw" else Codec(spec)
        self.waited_s = 0.0
        self._chunks = ChunkWriter(address, clock=clock, deadline_s=TRY_S)

    def encode(self, payload: npt.NDArray[np.uint8]) -> tuple[list[bytes] | None, npt.NDArray[np.uint32] | None]:
        """Values of chunks and their sizes; None and None where rows are stored as they are."""
        if self._codec is None:
            return None, None
        encoded = self._codec.encode(payload)
        return encoded.values, encoded.stored_bytes

    def begin(self, parcel: Parcel, *, deadline_s: float) -> PendingWrite:
        """Send chunks and log entry off, once the flush before is known to be stored. Does not wait for this one.

        Raises:
            DeadlineExceeded: Redis had no memory until the deadline; this parcel was not sent, and may be begun again.
            StoreUnavailable: Redis was away for too long; likewise.
        """
        command = ("XADD", self._log_key, "*", "i", encode_insert(parcel.entry))

        def attempt() -> PendingWrite:
            where = (self._prefix, self._writer, parcel.env, parcel.chunk_no)
            if parcel.values is None:
                return self._chunks.begin(*where, parcel.payload, then=[command])
            return self._chunks.begin_values(*where, parcel.values, then=[command])

        try:
            return attempt()
        except StoreUnavailable as error:
            return self._insist(attempt, error, deadline_s=deadline_s, held_bytes=parcel.stored_bytes)

    def settle(self, *, deadline_s: float) -> None:
        """Wait until Redis has stored the flush that was begun last; raises as `begin`, at this deadline. The flush stays begun."""
        try:
            self._chunks.settle()
        except StoreUnavailable as error:
            away_s = min(deadline_s, self._away_s)
            self._insist(self._chunks.settle, error, deadline_s=deadline_s, held_bytes=0, away_s=away_s)

    def close(self) -> None:
        """Close the connection; the sender connects again when used again."""
        self._chunks.close()

    def _insist(
        self,
        attempt: Callable[[], T],
        error: StoreUnavailable,
        *,
        deadline_s: float,
        held_bytes: int,
        away_s: float | None = None,
    ) -> T:
        """Try again until the deadline of what is the matter: Redis is full, or Redis is away."""
        deadlines = {
            True: Deadline(self._clock, after_s=deadline_s),
            False: Deadline(self._clock, after_s=self._away_s if away_s is None else away_s),
        }
        began_s = self.waited_s
        while True:
            full = is_out_of_memory(error)
            deadline = deadlines[full]
            for_whom = f"Redis is out of memory: {self._memory()}" if full else "Redis, which does not answer"
            with self._waits.waiting(who=f"writer {self._writer}", for_whom=for_whom) as wait:
                while is_out_of_memory(error) is full:
                    if deadline.passed():
                        raise self._too_long(deadline, held_bytes) if full else error
                    wait.still()
                    self._clock.sleep(min(PAUSE_S, deadline.remaining_s()))
                    try:
                        return attempt()
                    except StoreUnavailable as again:
                        error = again
                    finally:
                        self.waited_s = began_s + deadline.waited_s()

    def _too_long(self, deadline: Deadline, held_bytes: int) -> DeadlineExceeded:
        return DeadlineExceeded(
            f"{self._where} waited {deadline.waited_s() + TRY_S:.1f} s for Redis, which is out of memory: {self._memory()}; "
            "raise maxmemory, or give tables a smaller max_items or max_bytes. "
            f"Its {held_bytes:,} bytes of rows are held, and sent with the next call"
        )

    def _memory(self) -> str:
        found: Any = self._store.run("report its memory", lambda client: client.info("memory"))
        return f"{found['used_memory']:,} of maxmemory {found['maxmemory']:,} bytes are used"
