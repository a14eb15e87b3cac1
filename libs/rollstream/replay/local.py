"""Replay in one process, without services: the same tables, writers and clients over an embedded server.

    with LocalReplay("replay-data", tables=[TableSpec(name="replay", max_items=100_000, rows=row_spec)]) as replay:
        writer = replay.writer("replay", rule=NStep(3), environments=8)
        client = replay.client("replay")
        writer.append(rollout)
        batch = client.sample(batch_items=256, deadline_s=10.0)

Rows lie in a server process of its own (so the memory of this one stays small, and a crash loses at most a second); the index
lives here and works when it is asked, in the thread that asks. Closing saves everything; opening the directory again goes on.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rollstream.clock import Clock, SystemClock
from rollstream.errors import ConfigError, DeadlineExceeded, StoreError, TableError
from rollstream.replay.client import TableClient
from rollstream.replay.local_requests import LocalLink
from rollstream.replay.local_server import LocalServer
from rollstream.replay.local_shards import LocalShards
from rollstream.replay.offline import LoadResult, OfflineRows, write_rows
from rollstream.replay.rules import EachRow, ItemRule, Transition
from rollstream.replay.spec import TableSpec
from rollstream.replay.spec_changes import IMMUTABLE
from rollstream.replay.trajectory_writer import TrajectoryWriter
from rollstream.replay.writer import TableWriter
from rollstream.store import Address, Store, keys

__all__ = ["LocalReplay"]

EXPERIMENT = "local"
"""First part of the ids of all tables of a `LocalReplay`."""
SETTLE_S = 1.0


class LocalReplay:
    """Tables of this process. Close it, or use it as a context manager.

    Methods may be called from several threads; a writer or a client belongs to one thread each.

    Args:
        directory: where the data stay; None: in a temporary one, which is deleted at the end.
        tables: those that shall be there. One that is there already takes over the settings given here; its rows must be the same.
        store, address: of a Redis that runs already, instead of `directory`; both or none.
        seed: of samplers and removers.
        server_settings: further lines of the embedded server's configuration, e.g. `{"maxmemory": "4gb"}`.

    Raises:
        ConfigError: a table cannot work, or other processes serve the shards of this Redis.
        StoreError: the server did not start.

    >>> import numpy as np
    >>> spec = TableSpec(name="numbers", max_items=100, rows=[("number", "<i8", ())])
    >>> with LocalReplay(tables=[spec]) as replay:
    ...     loaded = replay.load("numbers", {"number": np.arange(10)})
    ...     batch = replay.client("numbers").sample(batch_items=4, deadline_s=5.0)
    >>> loaded.items, batch.rows["number"].shape
    (10, (4, 1))
    """

    def __init__(
        self,
        directory: Path | str | None = None,
        *,
        tables: Sequence[TableSpec] = (),
        store: Store | None = None,
        address: Address | None = None,
        seed: int = 0,
        server_settings: Mapping[str, str] | None = None,
        clock: Clock | None = None,
    ) -> None:
        if (store is None) != (address is None) or (store is not None and directory is not None):
            raise ConfigError("LocalReplay takes a directory, or a store with its address, or nothing; got a mixture")
        self._clock = clock or SystemClock()
        self._resources = contextlib.ExitStack()
        self._closed = False
        self._process = os.getpid()
        self._writers: weakref.WeakSet[TableWriter] = weakref.WeakSet()
        alone = store is None  # nobody else knows the server that is started here
        with contextlib.ExitStack() as undo:
            undo.push(self._resources.__exit__)
            if store is None or address is None:
                address = self._start_server(directory, server_settings or {})
                store = Store(address, clock=self._clock, name="local-replay")
                self._resources.callback(store.close)
            self._store, self._address = store, address
            self._shards = LocalShards(
                store,
                address,
                owner="LocalReplay" if alone else f"LocalReplay in process {os.getpid()}",
                seed=seed,
                clock=self._clock,
                alone=alone,
                settle=self._settle,
            )
            self._resources.callback(self._shards.close)
            self._shards.serve(self._stored())
            for spec in sorted(tables, key=lambda spec: spec.rows_of != ""):
                self.create(spec)
            undo.pop_all()

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the tables."""
        return tuple(table_id.removeprefix(f"{EXPERIMENT}.") for table_id in self._shards.table_ids())

    def create(self, spec: TableSpec) -> None:
        """Add a table; one of this name takes over the settings, unless they say how rows are stored.

        Raises:
            ConfigError, SchemaMismatch: there is one with other rows.
        """
        table_id = self._id(spec.name)
        if table_id not in self._shards.table_ids():
            self._shards.add(table_id, spec)
            return
        there = self._shards.spec(table_id)
        there.row_spec.require_equal(spec.row_spec, ours=f"table {spec.name}", theirs="the new spec")
        for name in IMMUTABLE:
            if getattr(there, name) != getattr(spec, name):
                raise ConfigError(
                    f"{name} of table {spec.name} is {getattr(there, name)!r} and cannot become {getattr(spec, name)!r}; take "
                    "another name, or drop the table first"
                )
        if there != spec:
            self._shards.change(table_id, spec)

    def drop(self, table: str) -> None:
        """Delete a table with its rows."""
        self._shards.drop(self._known(table))

    def spec(self, table: str) -> TableSpec:
        """Settings of a table as they are now."""
        return self._shards.spec(self._known(table))

    def writer(self, table: str, rule: ItemRule | None = None, *, environments: int, **options: Any) -> TableWriter:
        """A writer of rollouts (`TableWriter`, which says what `options` there are).

        Args:
            table: that the rows belong to.
            rule: how rows become its items.
        """
        table_id = self._known(table)
        made = TableWriter(
            self._store,
            self._address,
            table_id=table_id,
            spec=self.spec(table),
            rule=rule,
            environments=environments,
            clock=self._clock,
            while_waiting=lambda blocked: self._shards.while_writing(table_id, blocked=blocked),
            **options,
        )
        self._writers.add(made)
        return made

    def trajectory_writer(
        self, tables: Mapping[str, ItemRule | Sequence[ItemRule]], *, environments: int, **options: Any
    ) -> TrajectoryWriter:
        """A writer of steps (`TrajectoryWriter`, which says what `options` there are).

        Args:
            tables: by name, the rules that make its items; all over the same rows.
        """
        table_ids = [self._known(table) for table in tables]
        return TrajectoryWriter(
            self._store,
            self._address,
            experiment=EXPERIMENT,
            tables=tables,
            environments=environments,
            clock=self._clock,
            while_waiting=lambda blocked: self._shards.while_writing(table_ids[0], blocked=blocked),
            **options,
        )

    def client(self, table: str, **options: Any) -> TableClient:
        """A client that samples a table (`TableClient`, which says what `options` there are)."""
        return TableClient(
            self._store,
            self._address,
            table_id=self._known(table),
            clock=self._clock,
            make_link=lambda shard: LocalLink(self._shards, shard=shard),
            **options,
        )

    def load(
        self, table: str, data: OfflineRows | Mapping[str, Any], *, rule: ItemRule | None = None, deadline_s: float = 60.0
    ) -> LoadResult:
        """Write recorded data into a table.

        Args:
            data: from `load_npz` or `load_minari`, or arrays by name as they are in a NumPy archive.
            rule: how rows become items; None: transitions where there are episodes, else each row for itself.
        """
        from rollstream.replay.offline.npz import rows_from_arrays

        rows = self.spec(table).row_spec
        names = tuple(rows.dtype.names or ())
        found = data if isinstance(data, OfflineRows) else rows_from_arrays(data, source="the data given", keep=names)
        fitted = found.fitted(rows)
        chosen = rule or (Transition() if found.episodic else EachRow())
        with contextlib.ExitStack() as writers:
            made = [self.writer(table, chosen, environments=1, shard=shard) for shard in range(self.spec(table).shards)]
            for writer in made:
                writers.callback(writer.close)
            return write_rows(fitted, made, clock=self._clock, deadline_s=deadline_s)

    def save(self) -> None:
        """Write snapshots of all tables now, so that opening them again is quick."""
        self._shards.save()

    def close(self) -> None:
        """Save everything and stop the server. Writers and clients must be closed before. In a forked child it does nothing."""
        if not self._closed and os.getpid() == self._process:
            self._closed = True
            self._resources.close()

    def __enter__(self) -> LocalReplay:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- inside ----------------------------------------------------------------------------------------------------------

    def _start_server(self, directory: Path | str | None, settings: Mapping[str, str]) -> Address:
        if directory is None:
            directory = tempfile.mkdtemp(prefix="rollstream-replay-")
            self._resources.callback(shutil.rmtree, directory, ignore_errors=True)
        server = LocalServer(Path(directory), clock=self._clock, settings=settings)
        self._resources.callback(server.stop)
        return server.start()

    def _stored(self) -> dict[str, TableSpec]:
        stored: Any = self._store.run("read the tables", lambda client: client.hgetall(keys.tables()))
        return {
            table_id.decode(): TableSpec.model_validate_json(text)
            for table_id, text in stored.items()
            if table_id.decode().startswith(f"{EXPERIMENT}.")
        }

    def _known(self, table: str) -> str:
        if table not in self.tables:
            raise TableError(f"there is no table {table!r} in this replay; there are: {', '.join(self.tables) or 'none'}")
        return self._id(table)

    def _id(self, table: str) -> str:
        return f"{EXPERIMENT}.{table}"

    def _settle(self) -> None:
        """Wait until Redis has what writers have sent. Their own problems are told to them, not to whoever reads."""
        for writer in list(self._writers):
            with contextlib.suppress(DeadlineExceeded, StoreError):
                writer.settle(deadline_s=SETTLE_S)
