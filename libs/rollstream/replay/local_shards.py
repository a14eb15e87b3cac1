"""All shards of all tables of one process, driven by those who use them: there is no service and no thread that works by itself.

    sampler ─▶ lock ─▶ pump: read logs, admit ─▶ draw ─▶ reply
    writer waits ─▶ lock ─▶ pump, acknowledge ─▶ credit

Whoever needs something pumps first. Several threads may do so; one that waits lets the others in.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from rollstream.clock import Clock, Deadline
from rollstream.errors import ConfigError, DeadlineExceeded, LeaseLost, StoreUnavailable, TableError
from rollstream.replay.local_rows import LocalRows, read_logs
from rollstream.replay.local_server import THREAD_PREFIX
from rollstream.replay.memory_check import require_memory
from rollstream.replay.position import TableCounts
from rollstream.replay.samples import SampleReply, SampleRequest
from rollstream.replay.shard import Guard, TableShard
from rollstream.replay.spec import TableSpec
from rollstream.replay.uninterrupted import uninterrupted
from rollstream.store import Address, ChunkReader, Lease, Store, keys
from rollstream.store.retry import is_out_of_memory

__all__ = ["LocalShards"]

READ_ENTRIES = 128
LEASE_TTL_S = 30.0
"""Nothing renews a lease while nobody calls, so it is long; one that ran out is taken back if nobody took it."""
SHORTEST_PAUSE_S = 0.001
LONGEST_PAUSE_S = 0.02
FULL_AFTER_S = 0.25
"""A Redis that is full is noticed after this, one that is away after the store's deadline."""
HOPELESS_AFTER_S = 0.05
"""What this thread has just sent is in Redis by then."""
WRITER_SLICE_S = 3.0
"""A writer that waits comes by at least this often; until then whoever pumps gives it its credit at once."""
"""Pauses of one who waits for another thread or process, before looking again."""


class LocalShards:
    """Thread-safe.

    Args:
        owner: shown to whoever finds the shards taken.
        seed: of samplers and removers.
        alone: whether nobody outside of this process can write or sample. Then a wait in the only thread is hopeless.
        settle: called before logs are read in the only thread: whatever this thread has sent is to be in Redis then.
    """

    def __init__(
        self,
        store: Store,
        address: Address,
        *,
        owner: str,
        seed: int,
        clock: Clock,
        alone: bool,
        settle: Callable[[], None] = lambda: None,
    ) -> None:
        self.store = store
        self.address = address
        self.clock = clock
        self._owner = owner
        self._seed = seed
        self._alone = alone
        self._settle = settle
        self._process = os.getpid()
        self._changed = threading.Condition(threading.RLock())
        self._writers_wait_until_s = 0.0
        self._leases: dict[int, Lease] = {}
        self._rows: dict[tuple[str, int], LocalRows] = {}
        self._primary: dict[str, str] = {}
        self._reader = ChunkReader(address, clock=clock)
        self._saver = ThreadPoolExecutor(max_workers=1, thread_name_prefix=f"{THREAD_PREFIX}-snapshots")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Nobody else changes anything inside the block."""
        with self._changed:
            yield

    # --- tables ----------------------------------------------------------------------------------------------------------

    def serve(self, specs: Mapping[str, TableSpec]) -> None:
        """Take up tables that Redis knows: with their snapshots, logs, and those that share their rows."""
        primaries = {table_id: spec for table_id, spec in specs.items() if not spec.rows_of}
        for table_id, spec in primaries.items():
            experiment = table_id.rpartition(".")[0]
            sharing = {
                other: shared
                for other, shared in specs.items()
                if shared.rows_of == spec.name and other.rpartition(".")[0] == experiment
            }
            self._recover(table_id, spec, sharing)

    def add(self, table_id: str, spec: TableSpec) -> None:
        """Make a new table, and write its spec down.

        Raises:
            ConfigError: the table whose rows it shares is not there, or it would not fit into Redis' memory when full.
        """
        with self._changed:
            require_memory(self.store, table_id, spec, {other: self.spec(other) for other in self._primary})
            if spec.rows_of:
                primary = f"{table_id.rpartition('.')[0]}.{spec.rows_of}"
                if self._primary.get(primary) != primary:
                    raise ConfigError(
                        f"table {table_id} has rows_of {spec.rows_of!r}, and there is no table {primary} with rows of its own; "
                        f"there are: {', '.join(sorted(self._primary)) or 'none'}"
                    )
                for rows in self._of(primary):
                    rows.shard.attach(table_id, spec)  # refuses one whose rows are others
                self._write_spec(table_id, spec)
                self._primary[table_id] = primary
                return
            self._lease(range(spec.shards))
            self._write_spec(table_id, spec)
            self._recover(table_id, spec, {})

    def drop(self, table_id: str) -> int:
        """Delete a table with its keys; returns their number. Tables that share its rows go first."""
        with self._changed:
            parts = self._of(table_id)
            if self._primary[table_id] != table_id:
                for rows in parts:
                    rows.shard.detach(table_id)
                dropped = 0
            else:
                sharing = [other for other, primary in self._primary.items() if primary == table_id and other != table_id]
                if sharing:
                    raise TableError(
                        f"table {table_id} cannot be dropped while {', '.join(sharing)} share its rows; drop them first"
                    )
                dropped = sum(rows.drop() for rows in parts)
                self._rows = {place: rows for place, rows in self._rows.items() if place[0] != table_id}
            del self._primary[table_id]
            self._guard(0)(f"drop table {table_id}", lambda pipeline: pipeline.hdel(keys.tables(), table_id))
            return dropped

    def change(self, table_id: str, spec: TableSpec) -> None:
        """Give a living table other settings."""
        with self._changed:
            if spec.max_items > self.spec(table_id).max_items:
                require_memory(
                    self.store, table_id, spec, {other: self.spec(other) for other in self._primary if other != table_id}
                )
            with uninterrupted():
                for rows in self._of(table_id):
                    rows.shard.tables[table_id].apply(spec)
            self._write_spec(table_id, spec)
            self._changed.notify_all()

    def table_ids(self) -> list[str]:
        """All tables."""
        return sorted(self._primary)

    def rows_of(self, table_id: str, shard: int) -> LocalRows:
        """One shard of a table's rows.

        Raises:
            TableError: there is no such table; lists those that there are.
        """
        parts = self._of(table_id)
        return parts[shard]

    def spec(self, table_id: str) -> TableSpec:
        """Settings of a table as they are now."""
        return self._of(table_id)[0].shard.tables[table_id].spec

    def _of(self, table_id: str) -> list[LocalRows]:
        primary = self._primary.get(table_id)
        if primary is None:
            raise TableError(
                f"table {table_id} does not exist in this replay; there are: {', '.join(self.table_ids()) or 'none'}"
            )
        return [rows for (name, _), rows in sorted(self._rows.items()) if name == primary]

    def _recover(self, table_id: str, spec: TableSpec, sharing: Mapping[str, TableSpec]) -> None:
        self._lease(range(spec.shards))
        for number in range(spec.shards):
            shard = TableShard(self.store, table_id=table_id, shard=number, spec=spec, guard=self._guard(number), seed=self._seed)
            shard.recover(sharing)
            self._rows[table_id, number] = LocalRows(shard, reader=self._reader, saver=self._saver, clock=self.clock)
        self._primary |= dict.fromkeys([table_id, *sharing], table_id)

    def _write_spec(self, table_id: str, spec: TableSpec) -> None:
        text = spec.model_dump_json()
        self._guard(0)(f"store the spec of table {table_id}", lambda pipeline: pipeline.hset(keys.tables(), table_id, text))

    # --- the lease -------------------------------------------------------------------------------------------------------

    def _lease(self, numbers: range) -> None:
        for number in numbers:
            if number in self._leases:
                continue
            key = keys.replay_lease(number)
            lease = Lease.acquire(
                self.store, key=key, token_key=keys.replay_token(number), owner=self._owner, ttl_s=LEASE_TTL_S, inherit=True
            )
            if lease is None:
                holder = Lease.owner_of(self.store, key=key)
                raise ConfigError(
                    f"replay shard {number} of this Redis is served by {holder}; use a TableClient and a TableWriter with it, or give "
                    "LocalReplay a directory of its own"
                )
            self._leases[number] = lease

    def _guard(self, number: int) -> Guard:
        def guard(what: str, fill: Any) -> list[Any]:
            lease = self._leases.get(number)
            if lease is None:
                raise LeaseLost(f"replay shard {number} is not held by this LocalReplay; it was closed")
            if lease.remaining_s() < LEASE_TTL_S / 2:
                lease.renew()
            deadline = Deadline(self.clock, after_s=self.store.deadline_s)
            while True:
                try:
                    return lease.guarded(what, fill, deadline_s=min(FULL_AFTER_S, deadline.remaining_s()))
                except StoreUnavailable as error:
                    if deadline.passed() or is_out_of_memory(error):
                        raise

        return guard

    # --- work ------------------------------------------------------------------------------------------------------------

    def pump(self, *, acknowledge: bool = False) -> None:
        """Take up what was written, and do what is due.

        Args:
            acknowledge: give writers their credit now.
        """
        self._require_same_process()
        with self._changed:
            if self.nobody_else():
                self._settle()
            full = True
            while full and self._rows:
                cursors = {rows.log_key: rows.shard.cursor for rows in self._rows.values()}
                read: Any = self.store.run("read the logs", partial(read_logs, cursors=cursors, count=READ_ENTRIES))
                with uninterrupted():
                    for rows in self._rows.values():
                        rows.take(read.get(rows.log_key, ()))
                    self._share_counts()
                full = any(len(entries) >= READ_ENTRIES for entries in read.values())
            acknowledge = acknowledge or self.clock.monotonic_s() < self._writers_wait_until_s
            for rows in self._rows.values():
                rows.upkeep(acknowledge=acknowledge)
            if acknowledge and not any(rows.shard.waiting_entries for rows in self._rows.values()):
                self._writers_wait_until_s = 0.0  # all have their credit

    def sample(self, table_id: str, shard: int, request: SampleRequest) -> SampleReply:
        """As many of the batches as the limiter allows, at least the first.

        Raises:
            DeadlineExceeded: it did not come in time, or in the only thread there is nobody who could make it come.
            TableError: no such table, or a batch that it can never serve.
        """
        deadline = Deadline(self.clock, after_s=request.deadline_ms / 1000)
        pause_s = SHORTEST_PAUSE_S
        with self._changed:
            rows = self.rows_of(table_id, shard)
            table = rows.shard.tables[table_id]
            if len(request.counts):
                problem = table.spec.batch_problem(int(request.counts.max()))
                if problem:
                    raise TableError(f"table {table_id} can never serve this batch: {problem}")
            while True:
                self.pump()
                with uninterrupted():
                    reply = rows.shard.sample(table, request)
                    if reply is not None:
                        rows.admit()
                if reply is not None:
                    self._changed.notify_all()
                    return reply
                request = replace(request, consumed=0)
                batch_items = int(request.counts[0])
                self.pump(acknowledge=True)
                hopeless = table.spec.shards == 1 and deadline.waited_s() > HOPELESS_AFTER_S and self.nobody_else()
                if deadline.passed() or hopeless:
                    raise DeadlineExceeded(self._why_no_sample(table_id, shard, batch_items, deadline.waited_s()))
                self._changed.wait(min(pause_s, max(SHORTEST_PAUSE_S, deadline.remaining_s())))
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    def while_writing(self, table_id: str, *, blocked: bool) -> None:
        """Called by a writer that has no room.

        Args:
            blocked: whether pumping was not enough and it is about to wait.

        Raises:
            DeadlineExceeded: only samples could let it go on, and in the only thread nobody could take them.
        """
        if not blocked:
            self._writers_wait_until_s = self.clock.monotonic_s() + WRITER_SLICE_S
            self.pump(acknowledge=True)
            return
        if not self.nobody_else():
            return
        reasons = [rows.shard.insert_waits_for() for rows in self._of(table_id)]
        if any(reasons):
            raise DeadlineExceeded(
                f"table {table_id}: the writer waits, for {'; '.join(filter(None, reasons))}; and no sampler can come, for this is "
                "the only thread. Sample before writing on, use two threads, or raise the limiter's tolerance"
            )

    def _require_same_process(self) -> None:
        if os.getpid() != self._process:
            raise ConfigError(
                f"this LocalReplay belongs to process {self._process} and is used in process {os.getpid()}, after a fork; its index "
                "lives in one process, so sample there (DataLoader: num_workers=0), or run `rollstream up` for several processes"
            )

    def nobody_else(self) -> bool:
        """Whether no other thread or process could change anything while this one waits."""
        if not self._alone:
            return False
        here = threading.current_thread()
        return not any(thread is not here and not thread.name.startswith(THREAD_PREFIX) for thread in threading.enumerate())

    def _why_no_sample(self, table_id: str, shard: int, batch_items: int, waited_s: float) -> str:
        rows = self.rows_of(table_id, shard)
        table = rows.shard.tables[table_id]
        state = f"items {table.size}, inserted {table.limiter.inserted}, sampled {table.limiter.sampled}"
        writers = rows.shard.insert_waits_for()
        both = f"; writers wait too: {writers}" if writers else ""
        alone = (
            "; and no writer can come, for this is the only thread: write first, or in another one" if self.nobody_else() else ""
        )
        return (
            f"table {table_id} shard {shard}: a batch of {batch_items} items did not come within {waited_s:.1f} s; "
            f"{table.sample_waits_for(batch_items)}{both}{alone} ({state})"
        )

    def _share_counts(self) -> None:
        """Let the limiter of each shard of a table know what the others count."""
        for table_id in self._primary:
            parts = self._of(table_id)
            if len(parts) < 2:
                continue
            tables = [rows.shard.tables[table_id] for rows in parts]
            for table in tables:
                others = [other.limiter.counts(size=other.size) for other in tables if other is not table]
                table.limiter.hear(sum(others, start=TableCounts()))

    def save(self) -> None:
        """Write everything down, so that the next one begins where this one stands."""
        with self._changed:
            self.pump()
            for rows in self._rows.values():
                rows.save()

    def close(self) -> None:
        """Save, and let go of the shards; in a child process, which does not own them, nothing."""
        if os.getpid() != self._process:
            return
        with self._changed:
            try:
                if self._leases:
                    self.save()
                    for lease in self._leases.values():
                        lease.release()
            finally:
                self._leases = {}
                self._saver.shutdown(wait=True)
                self._reader.close()
