"""The life of a shard: takes the lease, rebuilds its tables, serves them, and starts again when Redis or the lease was lost.

    standing by ──lease──▶ recovering ──▶ serving ──stop──▶ last snapshot, lease released
         ▲                                   │
         └── lease lost, Redis away too long ┘   (memory is thrown away: all of it is in Redis)

One event loop owns all tables. Whatever waits for Redis runs in threads: reading the logs, acknowledging, unlinking rows, writing
snapshots, renewing the lease; each is one task that does one thing at a time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from rollstream.clock import Clock
from rollstream.errors import LeaseLost, StoreError, TableError
from rollstream.metrics import Waits
from rollstream.replay.shard import LogEntries, TableShard
from rollstream.replay.spec import TableSpec
from rollstream.store import Address, ChunkReader, Lease, Store, keys
from rollstream_replay.served_table import ServedTable
from rollstream_service.health import Health

__all__ = ["NotServing", "ShardServer"]

_LOG = logging.getLogger("rollstream.replay")
T = TypeVar("T")
BLOCK_MS = 500
READ_ENTRIES = 128
STANDBY_EVERY_S = 0.25
TIDY_EVERY_S = 0.5
POSITION_EVERY_S = 1.0
READ_PAUSE_S = 0.003
ACKNOWLEDGE_PAUSE_S = 0.008
"""Pauses after a read and after an acknowledgement: under load several flushes share one, and writers have more in flight."""
REPEAT_CREDIT_EVERY_S = 5.0


class NotServing(TableError):
    """The shard cannot answer now: it starts, stands by, or stops. Ask again."""


class ShardServer:
    """All tables of one shard in this process.

    Args:
        owner: name of this process, shown to people who look for the holder of the lease.
        changed: called when readiness changed, so that the member record says so at once.
        failed: called when the shard cannot go on at all: the process should end.
    """

    def __init__(
        self,
        store: Store,
        address: Address,
        *,
        shard: int,
        owner: str,
        lease_ttl_s: float,
        seed: int,
        clock: Clock,
        health: Health,
        waits: Waits,
        changed: Callable[[], None] = lambda: None,
        failed: Callable[[BaseException], None] = lambda error: None,
    ) -> None:
        self.shard = shard
        self.tables: dict[str, ServedTable] = {}
        self._store = store
        self.address = address
        self._owner = owner
        self._lease_ttl_s = lease_ttl_s
        self._seed = seed
        self._clock = clock
        self._health = health
        self._waits = waits
        self._changed = changed
        self._failed = failed
        self._lease: Lease | None = None
        self._serving = False
        self._state = "starting"
        self._threads = ThreadPoolExecutor(max_workers=8, thread_name_prefix="replay")
        self._dirty = asyncio.Event()
        self._main: asyncio.Task[None] | None = None
        self._changes_id = "$"
        health.condition("lease", ok=False, why=self._state)

    # --- for the API -----------------------------------------------------------------------------------------------------

    def table(self, table_id: str) -> ServedTable:
        """The table of this id.

        Raises:
            NotServing: nothing is served now.
            TableError: there is none.
        """
        self.require_serving()
        table = self.tables.get(table_id)
        if table is None:
            known = ", ".join(sorted(self.tables)) or "none"
            raise TableError(f"table {table_id} does not exist on shard {self.shard}; there are: {known}")
        return table

    def require_serving(self) -> None:
        lease = self._lease
        if not self._serving or lease is None or lease.remaining_s() <= 0:
            raise NotServing(f"replay shard {self.shard} is not serving: {self._state}")

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Run something that waits for Redis without holding up the loop."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def guard(self, what: str, fill: Any) -> list[Any]:
        """Execute commands only while the lease is ours; from any thread."""
        lease = self._lease
        if lease is None:
            raise LeaseLost(f"replay shard {self.shard} does not hold its lease")
        return lease.guarded(what, fill)

    async def add_table(self, table_id: str, spec: TableSpec) -> ServedTable:
        """Make and serve a table; what its log already holds is taken up."""
        shard = TableShard(self._store, table_id=table_id, shard=self.shard, spec=spec, guard=self.guard, seed=self._seed)
        await self.in_thread(shard.recover)
        table = ServedTable(shard, clock=self._clock, waits=self._waits)
        self.tables[table_id] = table
        table.writers_dirty = True
        self.advance(table)
        return table

    async def drop_table(self, table_id: str) -> int:
        """Stop serving a table and delete everything of it; returns the number of keys. Harmless when there is none."""
        table = self.tables.pop(table_id, None)
        if table is None:
            return 0
        table.close(TableError(f"table {table_id} does not exist any more: it was dropped"))
        await self.in_thread(
            lambda: self.guard(f"drop table {table_id}", lambda pipeline: pipeline.hdel(keys.tables(), table_id))
        )
        return await self.in_thread(table.shard.drop)

    def advance(self, table: ServedTable) -> None:
        """Admit and serve; call after anything that may let somebody go on."""
        if table.advance():
            asyncio.get_running_loop().call_soon(self.advance, table)
        if table.writers_dirty or table.samples_dirty:
            self._dirty.set()

    # --- life ------------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin, in the running event loop."""
        self._main = asyncio.create_task(self._live(), name="shard")

    async def stop(self) -> None:
        """Stop serving, save a snapshot of each table that changed, and let go of the shard."""
        if self._main is not None:
            self._main.cancel()
            await asyncio.wait([self._main])
        self._threads.shutdown(wait=True, cancel_futures=True)

    async def _live(self) -> None:
        try:
            while True:
                await self._live_once()
        except asyncio.CancelledError:
            await self._leave()
            raise
        except BaseException as error:
            self._not_serving(f"failed: {error!r}")
            _LOG.error("shard %d failed", self.shard, exc_info=True)
            self._failed(error)

    async def _live_once(self) -> None:
        try:
            await self._stand_by()
            await self._serve()
        except* StoreError as group:
            self._not_serving(f"starting again: {group.exceptions[0]}")
            _LOG.error("shard %d starts again from Redis: %s", self.shard, group.exceptions[0])
            await asyncio.sleep(STANDBY_EVERY_S)

    async def _stand_by(self) -> None:
        """Wait until the lease of the shard is ours."""
        self._lease = None
        while self._lease is None:
            self._lease = await self.in_thread(
                lambda: Lease.acquire(
                    self._store,
                    key=keys.replay_lease(self.shard),
                    token_key=keys.replay_token(self.shard),
                    owner=self._owner,
                    ttl_s=self._lease_ttl_s,
                )
            )
            if self._lease is None:
                holder = await self.in_thread(lambda: Lease.owner_of(self._store, key=keys.replay_lease(self.shard)))
                self._not_serving(f"standing by, the shard belongs to {holder}")
                await asyncio.sleep(STANDBY_EVERY_S)

    async def _serve(self) -> None:
        self._state = "recovering tables"
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._renew())
            await self._recover()
            self._serving = True
            self._health.condition("lease", ok=True)
            self._health.expect("log", within_s=30.0)
            self._changed()
            _LOG.info("shard %d serves %d tables", self.shard, len(self.tables))
            for loop in (self._read, self._acknowledge, self._tidy, self._snapshot, self._repeat_credit):
                tasks.create_task(loop())

    async def _recover(self) -> None:
        stored: Any = await self.in_thread(
            lambda: self._store.run("read the tables of the cell", lambda client: client.hgetall(keys.tables()))
        )
        for table_id, text in stored.items():
            await self.add_table(table_id.decode(), TableSpec.model_validate_json(text))

    def _not_serving(self, state: str) -> None:
        was_serving, self._serving, self._state = self._serving, False, state
        for table in self.tables.values():
            table.close(NotServing(f"replay shard {self.shard} is not serving: {state}"))
        self.tables = {}
        self._health.forget("log")
        self._health.condition("lease", ok=False, why=state)
        if was_serving:
            self._changed()

    async def _leave(self) -> None:
        lease, tables = self._lease, list(self.tables.values())
        if lease is not None and self._serving:
            self._serving, self._state = False, "stopping"
            try:
                for table in tables:
                    if table.shard.worth_a_snapshot():
                        snapshot = table.shard.snapshot()
                        await self.in_thread(partial(table.shard.save_snapshot, snapshot))
                    else:
                        progress = table.shard.progress()
                        await self.in_thread(partial(table.shard.acknowledge, progress))
                await self.in_thread(lease.release)
            except StoreError as error:
                _LOG.warning("shard %d leaves without a last snapshot, its log has everything: %s", self.shard, error)
        self._not_serving("stopping")

    # --- loops -----------------------------------------------------------------------------------------------------------

    async def _renew(self) -> None:
        while True:
            lease = self._lease
            assert lease is not None, "renewal runs while a lease is held"
            await asyncio.sleep(lease.ttl_s / 4)
            await self.in_thread(partial(lease.renew, deadline_s=lease.ttl_s))

    async def _read(self) -> None:
        while True:
            self._health.beat("log")
            cursors = {keys.table_log(table_id, self.shard): (table_id, table) for table_id, table in self.tables.items()}
            positions = {key: table.shard.cursor for key, (_, table) in cursors.items()}
            for key, entries in await self.in_thread(partial(self._read_logs, positions)):
                if key == keys.changes():
                    self._changes_id = entries[-1][0].decode()
                    continue
                table_id, table = cursors[key]
                if self.tables.get(table_id) is table:
                    table.take(entries)
                    self.advance(table)
            await asyncio.sleep(READ_PAUSE_S)

    def _read_logs(self, positions: dict[str, str]) -> list[tuple[str, LogEntries]]:
        """New entries of all logs; a change in the cell wakes too, for it may be a new table."""

        def operation(client: Any) -> Any:
            return client.xread({**positions, keys.changes(): self._changes_id}, count=READ_ENTRIES, block=BLOCK_MS)

        reply = self._store.run("read the logs of tables", operation)
        return [(key.decode(), entries) for key, entries in reply]

    async def _acknowledge(self) -> None:
        last_s: dict[str, float] = {}
        while True:
            await self._dirty.wait()
            self._dirty.clear()
            later = False
            for table in list(self.tables.values()):
                now_s = self._clock.monotonic_s()
                if not table.writers_dirty and now_s - last_s.get(table.table_id, 0.0) < POSITION_EVERY_S:
                    later = later or table.samples_dirty
                    continue
                if not table.writers_dirty and not table.samples_dirty:
                    continue
                table.writers_dirty = table.samples_dirty = False
                last_s[table.table_id] = now_s
                progress = table.shard.progress()
                await self.in_thread(partial(table.shard.acknowledge, progress))
            if later:
                asyncio.get_running_loop().call_later(POSITION_EVERY_S, self._dirty.set)
            await asyncio.sleep(ACKNOWLEDGE_PAUSE_S)

    async def _tidy(self) -> None:
        reader = ChunkReader(self.address, clock=self._clock)
        try:
            while True:
                await asyncio.sleep(TIDY_EVERY_S)
                for table in list(self.tables.values()):
                    garbage = table.take_garbage()
                    if len(garbage):
                        await self.in_thread(partial(table.shard.unlink, reader, garbage))
                    table.watch()
        finally:
            reader.close()

    async def _snapshot(self) -> None:
        while True:
            await asyncio.sleep(TIDY_EVERY_S)
            for table in list(self.tables.values()):
                if table.shard.snapshot_due():
                    await self.save_snapshot(table)

    async def save_snapshot(self, table: ServedTable) -> None:
        """Save a table's index now."""
        snapshot = table.shard.snapshot()
        await self.in_thread(lambda: table.shard.save_snapshot(snapshot))

    async def _repeat_credit(self) -> None:
        while True:
            await asyncio.sleep(REPEAT_CREDIT_EVERY_S)
            for table in list(self.tables.values()):
                table.repeat_credit()
                self.advance(table)
