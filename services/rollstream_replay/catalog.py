"""Which tables there are: their specs in Redis, and what is made of them on this shard.

    PUT ─▶ check ─▶ spec in Redis ─▶ served here ─▶ announced ─▶ other shards of the table look too
    DELETE ─▶ gone here ─▶ spec gone ─▶ announced ─▶ other shards let go of their parts

A table with `rows_of` lies over the rows of another table of its experiment, on the same shards.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from rollstream.config import load
from rollstream.errors import ConfigError, SchemaMismatch, TableError
from rollstream.replay.memory_check import require_memory
from rollstream.replay.spec import TableSpec
from rollstream.replay.spec_changes import changed_spec, require_same
from rollstream.store import Changes, Store, keys
from rollstream_replay.served_rows import ServedRows

if TYPE_CHECKING:
    from rollstream_replay.shard_server import ShardServer

__all__ = ["Catalog", "StoredSpecs", "primary_of", "read_specs"]

_LOG = logging.getLogger("rollstream.replay")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSpecs:
    """Specs of the tables of which a shard holds a part.

    Attributes:
        primaries: tables with rows of their own, by id.
        others: tables that share rows, by id.
    """

    primaries: Mapping[str, TableSpec] = field(default_factory=dict)
    others: Mapping[str, TableSpec] = field(default_factory=dict)

    def sharing(self, table_id: str) -> dict[str, TableSpec]:
        """The tables that share the rows of this one."""
        return {other: spec for other, spec in self.others.items() if primary_of(other, spec) == table_id}


def primary_of(table_id: str, spec: TableSpec) -> str:
    """Id of the table whose rows a table uses.

    >>> primary_of("run-1.recent", TableSpec(name="recent", max_items=1, rows=[("a", "<f4", ())], rows_of="replay"))
    'run-1.replay'
    """
    return table_id.removesuffix(spec.name) + spec.rows_of if spec.rows_of else table_id


def read_specs(store: Store, *, shard: int) -> StoredSpecs:
    """What Redis says; specs that this release cannot read are told and left alone."""
    stored: Any = store.run("read the tables of the cell", lambda client: client.hgetall(keys.tables()))
    primaries: dict[str, TableSpec] = {}
    others: dict[str, TableSpec] = {}
    for key, text in sorted(stored.items()):
        table_id = key.decode()
        try:
            spec = TableSpec.model_validate_json(text)
        except (ValidationError, ConfigError) as error:
            _LOG.error("table %s is not served: its spec cannot be read by this release: %s", table_id, error)
            continue
        if shard < spec.shards:
            (others if spec.rows_of else primaries)[table_id] = spec
    return StoredSpecs(primaries=primaries, others=others)


class Catalog:
    """Creates, changes and drops tables of a shard, one request after another."""

    def __init__(self, server: ShardServer, store: Store) -> None:
        self._server = server
        self._store = store
        self._lock = asyncio.Lock()

    async def put(self, table_id: str, document: Mapping[str, Any]) -> ServedRows:
        """Create a table, or make sure that it is there with this spec.

        Raises:
            ConfigError: the spec cannot work, would not fit into memory, or is another than that of the table of this id.
            TableError: this shard holds no part of it, or the table whose rows it shares is not there.
        """
        server = self._server
        server.require_serving()
        spec = load(TableSpec, document, what="table spec")
        async with self._lock:
            there = server.tables.get(table_id)
            if there is not None:
                require_same(table_id, there.table.spec, spec)
                return server.rows_of(table_id)
            self._require_place(table_id, spec)
            await server.in_thread(lambda: require_memory(self._store, table_id, spec, self._specs()))
            rows = await self._create(table_id, spec)
        await self._announce(table_id)
        return rows

    async def change(self, table_id: str, changes: Mapping[str, Any]) -> ServedRows:
        """Change some fields of a living table's spec."""
        rows = self._server.rows_of(table_id)
        async with self._lock:
            before = rows.tables[table_id].table.spec
            spec = changed_spec(table_id, before, changes)
            if spec.max_items > before.max_items:
                others = {other: each for other, each in self._specs().items() if other != table_id}
                await self._server.in_thread(lambda: require_memory(self._store, table_id, spec, others))
            self._apply(rows, table_id, spec)  # before it is stored: a smaller table may make the room that this needs
            await self._server.in_thread(lambda: self._store_spec(table_id, spec))
        await self._announce(table_id)
        return rows

    async def drop(self, table_id: str, *, with_shared: bool) -> int:
        """Drop a table with all its keys; returns how many. Harmless when there is none.

        Raises:
            TableError: other tables share its rows, and `with_shared` is not given.
        """
        server = self._server
        server.require_serving()
        async with self._lock:
            if table_id not in server.tables:
                return 0
            rows = server.rows_of(table_id)
            sharing = [other for other in rows.tables if other != rows.table_id]
            if table_id == rows.table_id and sharing and not with_shared:
                raise TableError(
                    f"table {table_id} cannot be dropped: its rows are shared by {', '.join(sharing)}; drop these first, or all "
                    "with ?with_shared=true"
                )
            gone = [table_id, *sharing] if table_id == rows.table_id else [table_id]
            deleted = await self._let_go(rows, table_id)
            forget = partial(self._forget_specs, table_id, gone)
            await server.in_thread(forget)
        await self._announce(table_id)
        return deleted

    async def look(self) -> None:
        """Take up what other shards have created, changed and dropped."""
        server = self._server
        async with self._lock:
            specs = await server.in_thread(lambda: read_specs(self._store, shard=server.shard))
            stored = {**specs.primaries, **specs.others}
            for table_id, table in list(server.tables.items()):
                if table_id not in stored:
                    if table_id in server.tables:
                        await self._let_go(server.rows_of(table_id), table_id)
                elif stored[table_id] != table.table.spec:
                    with _told(table_id):
                        self._apply(server.rows_of(table_id), table_id, stored[table_id])
            for table_id, spec in specs.primaries.items():
                if table_id not in server.rows:
                    with _told(table_id):
                        await server.add_rows(table_id, spec, sharing=specs.sharing(table_id))
            for table_id, spec in specs.others.items():
                primary = server.rows.get(primary_of(table_id, spec))
                if primary is not None and table_id not in primary.tables:
                    with _told(table_id):
                        primary.attach(table_id, spec)

    # --- inside ----------------------------------------------------------------------------------------------------------

    def _specs(self) -> dict[str, TableSpec]:
        return {table_id: table.table.spec for table_id, table in self._server.tables.items()}

    def _require_place(self, table_id: str, spec: TableSpec) -> None:
        shard = self._server.shard
        if shard >= spec.shards:
            raise TableError(f"table {table_id} has shards 0 to {spec.shards - 1}: shard {shard} holds no part of it")
        others = [(other, each.shards) for other, each in self._specs().items()]
        twin = keys.table_with_same_tag(table_id, shards=spec.shards, others=others)
        if twin is not None:
            raise ConfigError(
                f"table {table_id} would have the keys of table {twin} (one hash tag in Redis); choose another name"
            )
        if not spec.rows_of:
            return
        if not table_id.endswith(f".{spec.name}"):
            raise ConfigError(f"name of the table is {spec.name}, but its id is {table_id}; they must end alike to share rows")
        primary = primary_of(table_id, spec)
        if primary not in self._server.rows:
            known = ", ".join(sorted(self._server.rows)) or "none"
            raise TableError(
                f"table {table_id} shares the rows of {primary}, which is no table with rows of its own here; create it first "
                f"(there are: {known})"
            )

    async def _create(self, table_id: str, spec: TableSpec) -> ServedRows:
        server = self._server
        if not spec.rows_of:
            await server.in_thread(lambda: self._store_spec(table_id, spec))
            return await server.add_rows(table_id, spec)
        rows = server.rows[primary_of(table_id, spec)]
        rows.attach(table_id, spec)
        try:
            await server.in_thread(lambda: self._store_spec(table_id, spec))
        except BaseException:
            rows.detach(table_id, TableError(f"table {table_id} could not be created"))
            raise
        return rows

    def _apply(self, rows: ServedRows, table_id: str, spec: TableSpec) -> None:
        table = rows.tables[table_id]
        table.table.apply(spec)
        table.forget_possible()
        rows.samples_dirty = True
        self._server.advance(rows)

    async def _let_go(self, rows: ServedRows, table_id: str) -> int:
        if table_id == rows.table_id:
            return await self._server.drop_rows(table_id)
        rows.detach(table_id, TableError(f"table {table_id} does not exist any more: it was dropped"))
        self._server.advance(rows)
        return 0

    def _store_spec(self, table_id: str, spec: TableSpec) -> None:
        text = spec.model_dump_json()
        what = f"store the spec of table {table_id}"
        self._server.guard(what, lambda pipeline: pipeline.hset(keys.tables(), table_id, text))

    def _forget_specs(self, table_id: str, gone: list[str]) -> None:
        self._server.guard(f"drop table {table_id}", lambda pipeline: pipeline.hdel(keys.tables(), *gone))

    async def _announce(self, table_id: str) -> None:
        await self._server.in_thread(lambda: Changes(self._store).announce("table", table_id))


@contextlib.contextmanager
def _told(table_id: str) -> Iterator[None]:
    """What another shard stored and this one cannot do is an error in the log, and no reason to end."""
    try:
        yield
    except (ConfigError, SchemaMismatch, TableError) as error:
        _LOG.error("table %s is not as its spec wants it: %s", table_id, error)
