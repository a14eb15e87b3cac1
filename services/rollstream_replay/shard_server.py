"""The life of a shard: takes the lease, rebuilds its tables, serves them, and starts again when Redis or the lease was lost.

    standing by ──lease──▶ recovering ──▶ serving ──stop──▶ last snapshot, lease released
         ▲                                   │
         └── lease lost, Redis away too long ┘   (memory is thrown away: all of it is in Redis)

One event loop owns all tables. Whatever waits for Redis runs in threads, see `Upkeep`. While Redis is out of memory the shard goes
on with what it has, see `Pressure`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from rollstream.clock import Clock, Deadline
from rollstream.errors import ConfigError, LeaseLost, SchemaMismatch, StoreError, StoreUnavailable, TableError
from rollstream.metrics import Waits
from rollstream.replay.shard import TableShard
from rollstream.replay.spec import TableSpec
from rollstream.store import Address, Lease, Store, keys
from rollstream.store.retry import is_out_of_memory
from rollstream_replay.absent import Absent, NotServing
from rollstream_replay.catalog import Catalog, read_specs
from rollstream_replay.pressure import Pressure
from rollstream_replay.served_rows import ServedRows
from rollstream_replay.served_table import ServedTable
from rollstream_replay.upkeep import Upkeep
from rollstream_service.health import Health

__all__ = ["ShardServer"]

_LOG = logging.getLogger("rollstream.replay")
T = TypeVar("T")
STANDBY_EVERY_S = 0.25
FULL_AFTER_S = 1.0
"""How long a write is tried before a full Redis counts as full."""


class ShardServer:
    """All tables of one shard in this process.

    Args:
        shards: numbers of the shards that this process may serve; it takes the first that is free.
        owner: name of this process, shown to people who look for the holder of the lease.
        inherit: only one living process has this name, so what an earlier one of it still holds is taken over at once.
        sweep_every_s: see `ReplaySettings`.
        changed: called when readiness changed, so that the member record says so at once.
        failed: called when the shard cannot go on at all: the process should end.

    Attributes:
        shard: the number of the shard that is served, or was wanted first.
        rows: row spaces by the id of the table that the rows belong to.
    """

    def __init__(
        self,
        store: Store,
        address: Address,
        *,
        shards: Sequence[int],
        owner: str,
        inherit: bool,
        lease_ttl_s: float,
        sweep_every_s: float,
        seed: int,
        clock: Clock,
        health: Health,
        waits: Waits,
        changed: Callable[[], None] = lambda: None,
        failed: Callable[[BaseException], None] = lambda error: None,
    ) -> None:
        self.shard = shards[0]
        self.rows: dict[str, ServedRows] = {}
        self.store = store
        self.address = address
        self.clock = clock
        self.health = health
        self.pressure = Pressure(clock)
        self._shards = shards
        self._owner = owner
        self._inherit = inherit
        self._lease_ttl_s = lease_ttl_s
        self._seed = seed
        self._waits = waits
        self._changed = changed
        self._failed = failed
        self._lease: Lease | None = None
        self._serving = False
        self._state = "starting"
        self._threads = ThreadPoolExecutor(max_workers=8, thread_name_prefix="replay")
        self._upkeep = Upkeep(self, sweep_every_s=sweep_every_s)
        self.catalog = Catalog(self, store)
        self._main: asyncio.Task[None] | None = None
        health.condition("lease", ok=False, why=self._state)

    # --- for the API -----------------------------------------------------------------------------------------------------

    @property
    def tables(self) -> dict[str, ServedTable]:
        """All tables by id."""
        return {table_id: table for rows in self.rows.values() for table_id, table in rows.tables.items()}

    def rows_of(self, table_id: str) -> ServedRows:
        """The row space that a table lies over.

        Raises:
            NotServing: nothing is served now.
            Absent: there is no such table.
        """
        self.require_serving()
        for rows in self.rows.values():
            if table_id in rows.tables:
                return rows
        known = ", ".join(sorted(self.tables)) or "none"
        raise Absent(f"table {table_id} does not exist on shard {self.shard}; there are: {known}")

    def holds(self, rows: ServedRows) -> bool:
        """Whether these rows are still this shard's: not dropped, not lost with the lease."""
        return self.rows.get(rows.table_id) is rows

    def table(self, table_id: str) -> ServedTable:
        """The table of this id; raises as `rows_of`."""
        return self.rows_of(table_id).tables[table_id]

    @property
    def serving(self) -> bool:
        """Whether the shard is ours now, as far as this process can know."""
        lease = self._lease
        return self._serving and lease is not None and lease.remaining_s() > 0

    def require_serving(self) -> None:
        """Raise `NotServing` unless `serving`."""
        if not self.serving:
            raise NotServing(f"replay shard {self.shard} is not serving: {self._state}")

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Run something that waits for Redis without holding up the loop."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def guard(self, what: str, fill: Any) -> list[Any]:
        """Execute commands only while the lease is ours; from any thread. A full Redis is noticed sooner than one that is away."""
        deadline = Deadline(self.clock, after_s=self.store.deadline_s)
        while True:
            lease = self._lease
            if lease is None:
                raise LeaseLost(f"replay shard {self.shard} does not hold its lease")
            try:
                replies = lease.guarded(what, fill, deadline_s=min(FULL_AFTER_S, deadline.remaining_s()))
            except StoreUnavailable as error:
                if is_out_of_memory(error):
                    self.pressure.felt(error)
                    raise
                if deadline.passed():
                    raise
            else:
                self.pressure.relieved()
                return replies

    async def add_rows(self, table_id: str, spec: TableSpec, *, sharing: Mapping[str, TableSpec] | None = None) -> ServedRows:
        """Make and serve a table with rows of its own, and those that share them; what its log already holds is taken up."""
        shard = TableShard(self.store, table_id=table_id, shard=self.shard, spec=spec, guard=self.guard, seed=self._seed)
        await self.in_thread(lambda: shard.recover(sharing))
        rows = ServedRows(shard, clock=self.clock, waits=self._waits)
        self.rows[table_id] = rows
        self.advance(rows)
        return rows

    async def drop_rows(self, table_id: str) -> int:
        """Stop serving a table with rows of its own and all that share them, and delete every key; returns how many.

        Harmless when there is none.
        """
        rows = self.rows.pop(table_id, None)
        if rows is None:
            return 0
        rows.close(TableError(f"table {table_id} does not exist any more: it was dropped"))
        async with rows.writing:
            return await self.in_thread(rows.shard.drop)

    def advance(self, rows: ServedRows) -> None:
        """Admit and serve; call after anything that may let somebody go on."""
        if rows.advance():
            asyncio.get_running_loop().call_soon(self.advance, rows)
        if rows.writers_dirty or rows.samples_dirty:
            self._upkeep.dirty.set()
        if rows.writers_near_bound:
            self._upkeep.hurry.set()
        if rows.garbage_crowded:
            self._upkeep.crowded.set()

    def advance_table(self, table_id: str) -> None:
        """`advance` for the rows of a table, if it is still there."""
        for rows in self.rows.values():
            if table_id in rows.tables:
                self.advance(rows)
                return

    async def save_snapshot(self, rows: ServedRows) -> bool:
        """Save the index of a row space now, and trim its log; False while an entry is half admitted."""
        return await self._upkeep.save_snapshot(rows)

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
        """Wait until the lease of a shard is ours."""
        self._lease = None
        while True:
            for shard in self._shards:
                lease = await self.in_thread(partial(self._acquire, shard))
                if lease is not None:
                    self.shard, self._lease = shard, lease
                    return
            holder = await self.in_thread(lambda: Lease.owner_of(self.store, key=keys.replay_lease(self.shard)))
            self._not_serving(f"standing by, the shard belongs to {holder}")
            await asyncio.sleep(STANDBY_EVERY_S)

    def _acquire(self, shard: int) -> Lease | None:
        return Lease.acquire(
            self.store,
            key=keys.replay_lease(shard),
            token_key=keys.replay_token(shard),
            owner=self._owner,
            ttl_s=self._lease_ttl_s,
            inherit=self._inherit,
        )

    async def _serve(self) -> None:
        self._state = "recovering tables"
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._renew())
            await self._recover()
            self._serving = True
            self.health.condition("lease", ok=True)
            self.health.expect("log", within_s=30.0)
            self._changed()
            _LOG.info("shard %d serves %d tables", self.shard, len(self.tables))
            for loop in self._upkeep.loops():
                tasks.create_task(loop)

    async def _recover(self) -> None:
        await self._upkeep.begin()
        specs = await self.in_thread(lambda: read_specs(self.store, shard=self.shard))
        for table_id, spec in specs.primaries.items():
            try:
                await self.add_rows(table_id, spec, sharing=specs.sharing(table_id))
            except (ConfigError, SchemaMismatch, TableError) as error:
                _LOG.error("table %s is not served: it cannot be rebuilt: %s", table_id, error)

    def _not_serving(self, state: str) -> None:
        was_serving, self._serving, self._state = self._serving, False, state
        for rows in self.rows.values():
            rows.close(NotServing(f"replay shard {self.shard} is not serving: {state}"))
        self.rows = {}
        self.health.forget("log")
        self.health.condition("lease", ok=False, why=state)
        if was_serving:
            self._changed()

    async def _leave(self) -> None:
        lease, served = self._lease, list(self.rows.values())
        if lease is not None and self._serving:
            self._serving, self._state = False, "stopping"
            try:
                for rows in served:
                    if rows.shard.worth_a_snapshot():
                        await self._upkeep.save_snapshot(rows)
                    progress = rows.shard.progress()
                    await self.in_thread(partial(rows.shard.acknowledge, progress))
            except StoreError as error:
                _LOG.warning("shard %d leaves without a last snapshot, its log has everything: %s", self.shard, error)
            try:
                await self.in_thread(lease.release)
            except StoreError as error:
                _LOG.warning("shard %d leaves without letting go of its lease, which runs out: %s", self.shard, error)
        self._not_serving("stopping")

    async def _renew(self) -> None:
        while True:
            lease = self._lease
            assert lease is not None, "renewal runs while a lease is held"
            await asyncio.sleep(lease.ttl_s / 4)
            await self.in_thread(partial(lease.renew, deadline_s=lease.ttl_s))
