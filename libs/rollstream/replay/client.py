"""The learner's side of a table: sample items, fetch their rows, return priorities, export and restore.

    sample ─▶ shard (HTTP): which items ─▶ Redis (MGET): their rows ─▶ arrays [B, L, ...]
    update_priorities ─▶ Redis (XADD to the table's log) ─▶ shard

Row bytes come straight from Redis. A row that was evicted between choosing and fetching is noticed, counted, reported to the
shard and replaced by another sample.
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
from rollstream.errors import DeadlineExceeded, TableError
from rollstream.replay.export import export_table, restore_table
from rollstream.replay.log import DeleteEntry, UpdateEntry, encode_delete, encode_update
from rollstream.replay.row_fetch import FetchedRows, RowFetch
from rollstream.replay.samples import SampledItems, SampleRequest, decode_reply, encode_request
from rollstream.replay.shard_link import ShardLink
from rollstream.replay.spec import TableSpec
from rollstream.store import Address, ChunkReader, Store, keys

__all__ = ["Sample", "TableClient", "UpdateResult"]

_LOG = logging.getLogger("rollstream.replay")
SPEC_DEADLINE_S = 30.0
KNOWN_DEADLINE_S = 1.0
"""How long a question waits for a shard that is away, when there is an answer without it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A batch of B items.

    Attributes:
        keys: u8 [B], to return priorities by.
        probability, priority, times_sampled: [B], when they were drawn.
        table_items: items that could be drawn; N of importance weights.
        rows: [B, L] of the table's row dtype; rows beyond an item's length are flagged PAD.
        lengths: i4 [B].
    """

    keys: npt.NDArray[np.uint64]
    probability: npt.NDArray[np.float64]
    priority: npt.NDArray[np.float32]
    times_sampled: npt.NDArray[np.int32]
    table_items: int
    rows: npt.NDArray[np.void]
    lengths: npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateResult:
    """How many priorities were sent, and how many refused because they were NaN, infinite or negative."""

    sent: int
    refused: int


class TableClient:
    """One reader of one table. One thread samples; everything else may be called from others meanwhile.

    Args:
        ahead_batches: how many batches more than needed are asked for at once; 0 samples at the time of the call, more hides the
            shard's round trip, at the price of samples that are a few batches old.
        locate: where the shard is; by default looked up among the members of the cell.
    """

    def __init__(
        self,
        store: Store,
        address: Address,
        *,
        table_id: str,
        clock: Clock,
        shard: int = 0,
        ahead_batches: int = 0,
        locate: Callable[[], str | None] | None = None,
    ) -> None:
        self.table_id = table_id
        self.shard = shard
        self.rows_missing = 0
        self.priorities_refused = 0
        self._store = store
        self._address = address
        self._clock = clock
        self._ahead_batches = ahead_batches
        self._path = f"/v1/tables/{table_id}"
        self._link = ShardLink(store, shard=shard, clock=clock, locate=locate)
        self._sampling = ShardLink(store, shard=shard, clock=clock, locate=locate)
        self._reader = ChunkReader(address, clock=clock)
        self._log_key = keys.table_log(table_id, shard)
        self._fetch: RowFetch | None = None
        self._waiting: deque[SampledItems] = deque()
        self._asked: SampleRequest | None = None
        self._last_info: dict[str, float] = {}

    # --- the table itself ------------------------------------------------------------------------------------------------

    def create(self, spec: TableSpec, *, deadline_s: float = SPEC_DEADLINE_S) -> None:
        """Create the table, or make sure that it is there with the same spec.

        Raises:
            ConfigError: it cannot work, would not fit into Redis' memory, or exists with another spec.
            DeadlineExceeded: no shard served the request in time.
        """
        self._link.request_json("PUT", self._path, spec.model_dump(mode="json"), deadline_s=deadline_s)

    def drop(self, *, deadline_s: float = SPEC_DEADLINE_S) -> None:
        """Delete the table with all its keys; nothing happens when there is none."""
        self._link.request_json("DELETE", self._path, deadline_s=deadline_s)

    def change(self, changes: dict[str, Any], *, deadline_s: float = SPEC_DEADLINE_S) -> TableSpec:
        """Change some fields of the spec on the living table; returns the new spec."""
        reply = self._link.request_json("PATCH", self._path, changes, deadline_s=deadline_s)
        return TableSpec.model_validate(reply["spec"])

    def describe(self, *, deadline_s: float = SPEC_DEADLINE_S) -> dict[str, Any]:
        """Everything that the shard says about the table."""
        reply: dict[str, Any] = self._link.request_json("GET", self._path, deadline_s=deadline_s)
        return reply

    def info(self, *, deadline_s: float | None = None) -> dict[str, float]:
        """The numbers of `describe`: items, inserted, sampled, ratio, bytes, ...

        Args:
            deadline_s: None waits for the first answer ever, and later only briefly: while the shard is away, the numbers of
                the last time are given, so that a report does not stand still with it.
        """
        try:
            wait_s = deadline_s or (KNOWN_DEADLINE_S if self._last_info else SPEC_DEADLINE_S)
            reply = self.describe(deadline_s=wait_s)
        except DeadlineExceeded:
            if deadline_s is not None or not self._last_info:
                raise
            return self._last_info
        self._last_info = {
            name: value for name, value in reply.items() if isinstance(value, int | float) and not isinstance(value, bool)
        }
        return self._last_info

    def items(self, *, order: str = "priority", limit: int = 20, deadline_s: float = SPEC_DEADLINE_S) -> list[dict[str, Any]]:
        """A look into the table: its first `limit` items by `priority`, `newest` or `oldest`."""
        path = f"{self._path}/items?order={order}&limit={limit}"
        reply: list[dict[str, Any]] = self._link.request_json("GET", path, deadline_s=deadline_s)["items"]
        return reply

    # --- samples ---------------------------------------------------------------------------------------------------------

    def sample(self, *, batch_items: int, deadline_s: float) -> Sample:
        """Draw `batch_items` items and fetch their rows.

        Raises:
            DeadlineExceeded: the limiter did not allow it in time; names the table, the limiter's state and who waits for whom.
            TableError: no such table, or a batch that it can never serve.
        """
        deadline = Deadline(self._clock, after_s=deadline_s)
        fetch = self._row_fetch()
        items = self._next_items(batch_items, deadline)
        rows = fetch.read(items)
        while rows.missing.any():
            items, rows = self._replace_missing(items, rows, deadline)
        return Sample(
            keys=items.keys,
            probability=items.probability,
            priority=items.priority,
            times_sampled=items.times_sampled,
            table_items=items.table_items,
            rows=rows.rows,
            lengths=items.length.astype(np.int32),
        )

    def can_sample(self, *, batch_items: int) -> bool:
        """Whether `sample` would not have to wait for the limiter now; False while the shard is away."""
        if self._waiting and len(self._waiting[0]) == batch_items:
            return True
        path = f"{self._path}/samples/possible?batch_items={batch_items}"
        try:
            return bool(self._link.request_json("GET", path, deadline_s=KNOWN_DEADLINE_S)["possible"])
        except DeadlineExceeded:
            return False

    def update_priorities(
        self, item_keys: npt.NDArray[Any], priorities: npt.NDArray[Any], *, learner_version: int = 0
    ) -> UpdateResult:
        """Set the priorities [K] of the items with `item_keys` [K]; neither array is changed.

        NaN, infinite and negative priorities are refused here, counted and logged; keys of items that are gone are ignored and
        counted by the shard. Safe to repeat.
        """
        if item_keys.shape != priorities.shape or item_keys.ndim != 1:
            raise TableError(
                f"table {self.table_id}: update_priorities needs keys [K] and priorities [K], got {item_keys.shape} and "
                f"{priorities.shape}"
            )
        with np.errstate(over="ignore"):
            narrow = priorities.astype(np.float32)
        good = np.isfinite(narrow) & (narrow >= 0.0)
        refused = len(good) - int(good.sum())
        if refused:
            self._report_refused(item_keys, priorities, good, learner_version)
        if not len(good):
            return UpdateResult(sent=0, refused=0)
        entry = encode_update(UpdateEntry(keys=item_keys[good].astype(np.uint64), priority=narrow[good], refused=refused))
        self._store.run("return priorities", lambda client: client.xadd(self._log_key, {b"u": entry}))
        return UpdateResult(sent=len(good) - refused, refused=refused)

    def delete_items(self, item_keys: npt.NDArray[Any]) -> None:
        """Remove items by key; those that are gone already are ignored."""
        entry = encode_delete(DeleteEntry(keys=item_keys.astype(np.uint64)))
        self._store.run("delete items", lambda client: client.xadd(self._log_key, {b"d": entry}))

    # --- checkpoints -----------------------------------------------------------------------------------------------------

    def export(self, *, rows_max_bytes: int, deadline_s: float = 300.0) -> bytes:
        """The table as one buffer, for a checkpoint: its index and, newest items first up to `rows_max_bytes`, their rows.

        Args:
            deadline_s: for the shard's part; Redis may be away for a third of it while rows are fetched.
        """
        index = self._link.request("GET", f"{self._path}/snapshot", deadline_s=deadline_s)
        reader = ChunkReader(self._address, clock=self._clock, deadline_s=deadline_s / 3)
        try:
            return export_table(index, reader=reader, table_id=self.table_id, shard=self.shard, rows_max_bytes=rows_max_bytes)
        finally:
            reader.close()

    def restore(self, exported: bytes | bytearray | memoryview, *, deadline_s: float = 300.0) -> int:
        """Replace the table's items by exported ones, whose rows are written anew; returns how many. Then it can be sampled."""
        index = restore_table(
            exported,
            store=self._store,
            address=self._address,
            clock=self._clock,
            table_id=self.table_id,
            shard=self.shard,
            row_spec=self._spec().row_spec,
        )
        self._forget_waiting()
        reply = self._link.request("PUT", f"{self._path}/snapshot", index, deadline_s=deadline_s)
        return int(reply)

    def close(self) -> None:
        """Close all connections."""
        self._link.close()
        self._sampling.close()
        self._reader.close()

    # --- inside ----------------------------------------------------------------------------------------------------------

    def _next_items(self, batch_items: int, deadline: Deadline) -> SampledItems:
        if self._waiting and len(self._waiting[0]) != batch_items:
            self._forget_waiting()
        if not self._waiting:
            self._receive(batch_items, deadline)
        if self._ahead_batches and self._asked is None and len(self._waiting) <= (self._ahead_batches + 1) // 2:
            self._ask(batch_items, batches=self._ahead_batches, deadline_ms=0)
        return self._waiting.popleft()

    def _receive(self, batch_items: int, deadline: Deadline) -> None:
        asked = self._asked
        if asked is not None:
            self._asked = None
            try:
                body = self._sampling.receive(deadline_s=deadline.remaining_s())
            except DeadlineExceeded:
                body = b""  # it was asked for with no time to wait; now there is some
            if body and asked.batch_items == batch_items:
                self._keep(body)
                return
        self._ask(batch_items, batches=1 + self._ahead_batches, deadline_ms=int(deadline.remaining_s() * 1000))
        self._asked = None
        self._keep(self._sampling.receive(deadline_s=deadline.remaining_s()))

    def _ask(self, batch_items: int, *, batches: int, deadline_ms: int) -> None:
        request = SampleRequest(batches=batches, batch_items=batch_items, deadline_ms=deadline_ms)
        self._sampling.send("POST", f"{self._path}/samples", encode_request(request))
        self._asked = request

    def _keep(self, body: bytes) -> None:
        reply = decode_reply(body)
        for batch in range(reply.batches):
            self._waiting.append(reply.items.part(slice(batch * reply.batch_items, (batch + 1) * reply.batch_items)))

    def _forget_waiting(self) -> None:
        self._waiting.clear()
        if self._asked is not None:
            self._sampling.close()
            self._asked = None

    def _replace_missing(self, items: SampledItems, rows: FetchedRows, deadline: Deadline) -> tuple[SampledItems, FetchedRows]:
        """Tell the shard that rows of some items are gone, and draw others in their place."""
        gone = rows.missing
        self.rows_missing += int(gone.sum())
        entry = encode_delete(DeleteEntry(keys=items.keys[gone], missing=True))
        self._store.run("report missing rows", lambda client: client.xadd(self._log_key, {b"d": entry}))
        if deadline.passed():
            raise DeadlineExceeded(
                f"table {self.table_id}: rows of {int(gone.sum())} of {len(items)} sampled items are gone from Redis, and no "
                f"others came within {deadline.waited_s():.1f} s"
            )
        request = SampleRequest(batches=1, batch_items=int(gone.sum()), deadline_ms=int(deadline.remaining_s() * 1000))
        body = self._link.request("POST", f"{self._path}/samples", encode_request(request), deadline_s=deadline.remaining_s())
        items = items.replaced(gone, decode_reply(body).items)
        return items, self._row_fetch().read(items)

    def _row_fetch(self) -> RowFetch:
        if self._fetch is None:
            self._fetch = RowFetch(self._reader, table_id=self.table_id, shard=self.shard, spec=self._spec())
        return self._fetch

    def _spec(self) -> TableSpec:
        stored: Any = self._store.run("read the table's spec", lambda client: client.hget(keys.tables(), self.table_id))
        if stored is None:
            raise TableError(f"table {self.table_id} does not exist; create it first")
        return TableSpec.model_validate_json(stored)

    def _report_refused(
        self, item_keys: npt.NDArray[Any], priorities: npt.NDArray[Any], good: npt.NDArray[np.bool_], version: int
    ) -> None:
        refused = ~good
        self.priorities_refused += int(refused.sum())
        level = logging.ERROR if refused.all() else logging.WARNING
        _LOG.log(
            level,
            "table %s: refused %d of %d priorities (first: key %d, value %s; learner version %d): they must be finite and >= 0",
            self.table_id,
            int(refused.sum()),
            len(good),
            int(item_keys[refused][0]),
            priorities[refused][0],
            version,
        )
