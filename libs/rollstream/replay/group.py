"""All tables over one row space on one shard: an entry of their log is open until each of them has admitted its items.

log ─▶ begin(entry) ─▶ RowSpace ─▶ Table "replay"   (the primary: the rows are its)
                              └──▶ Table "recent"   (rows_of="replay")
       admit() ... ─▶ all in: the row space lets go of what is no longer needed
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from rollstream.errors import ConfigError, TableError
from rollstream.replay.chunks import ChunkAddresses
from rollstream.replay.item_keys import Keys, make_keys
from rollstream.replay.log import DeleteEntry, InsertEntry, UpdateEntry
from rollstream.replay.row_space import OpenEntry, RowSpace
from rollstream.replay.spec import TableSpec
from rollstream.replay.table import Table

__all__ = ["TableGroup"]

ITEM_COLUMNS = ("start", "env", "length", "version", "lead", "table", "priority")
SHARED = ("rows", "chunk_rows", "encoding", "delta", "shards")


class TableGroup:
    """The primary table and those that share its rows.

    >>> from rollstream.replay.spec import TableSpec
    >>> group = TableGroup(TableSpec(name="replay", max_items=10, rows=[("reward", "<f4", ())]))
    >>> group.primary.size
    0
    """

    def __init__(self, spec: TableSpec, *, shard: int = 0, seed: int = 0) -> None:
        self.shard = shard
        self._seed = seed
        self.rows = RowSpace(chunk_rows=spec.chunk_rows)
        self.primary = Table(spec, rows=self.rows, shard=shard, seed=seed)
        self.tables: dict[str, Table] = {spec.name: self.primary}
        self._opened: OpenEntry | None = None

    def attach(self, spec: TableSpec) -> Table:
        """Add a table that shares the rows.

        Raises:
            ConfigError: it has other rows, or they are stored otherwise.
        """
        primary = self.primary.spec
        primary.row_spec.require_equal(spec.row_spec, ours=f"table {primary.name}", theirs=f"table {spec.name}")
        for name in SHARED:
            if getattr(spec, name) != getattr(primary, name):
                raise ConfigError(
                    f"{name} of table {spec.name} must be that of table {primary.name}, whose rows it shares: "
                    f"{getattr(primary, name)!r}, got {getattr(spec, name)!r}"
                )
        if spec.name in self.tables:
            raise ConfigError(f"table {spec.name} shares rows with {primary.name} already")
        table = Table(spec, rows=self.rows, shard=self.shard, seed=self._seed)
        self.tables[spec.name] = table
        return table

    def detach(self, name: str) -> None:
        """Drop a table that shares the rows; its items go, and what of an open entry was not admitted to it."""
        table = self.tables.pop(name)
        table.remove_all()

    # --- inserts ---------------------------------------------------------------------------------------------------------

    @property
    def admitting(self) -> InsertEntry | None:
        """The entry that is not wholly admitted yet."""
        return self._opened.entry if self._opened else None

    @property
    def admitted(self) -> dict[str, int]:
        """How many items of the entry in `admitting` are in, by table; -1 in those that have all of theirs."""
        return {name: table.admitted for name, table in self.tables.items()}

    def begin(self, entry: InsertEntry) -> bool:
        """Take up the next insert entry; False when it is a repetition or cannot be (counted), and there is nothing to admit."""
        if self._opened is not None:
            raise TableError("begin: the previous entry is not wholly admitted; call admit first")
        opened = self.rows.begin(entry)
        if opened is None:
            return False
        self._opened = opened
        keys = self._keys(entry)
        for name, chosen in self._chosen(opened):
            table = self.tables.get(name)
            if table is None:
                self.rows.counters["items_without_table"] += len(chosen)
            else:
                table.offer(opened, chosen, keys[chosen])
        return True

    def admit(self, *, at_least: dict[str, int] | int = 0) -> int:
        """Insert as many items of the entry as the limiters admit now, but at least so many (by table); returns how many."""
        opened = self._opened
        if opened is None:
            return 0
        inserted, open_still = 0, False
        for name, table in self.tables.items():
            wanted = at_least if isinstance(at_least, int) else at_least.get(name, 0)
            inserted += table.admit(at_least=opened.entry.items if wanted < 0 else wanted)
            open_still = open_still or table.admitting
        if not open_still:
            self.rows.close(opened)
            self._opened = None
        return inserted

    def insert_waits_for(self) -> str:
        """Why the open entry is not in yet, for people; empty when there is none."""
        waiting = {name: table for name, table in self.tables.items() if table.admitting}
        reasons = {name: table.limiter.insert_waits_for(size=table.size) for name, table in waiting.items()}
        if len(self.tables) == 1:
            return "".join(reasons.values())
        return "; ".join(f"{name}: {reason}" for name, reason in reasons.items() if reason)

    def _chosen(self, opened: OpenEntry) -> Sequence[tuple[str, npt.NDArray[np.int64]]]:
        """Usable items of each table that the entry names."""
        entry = opened.entry
        if entry.table is None:
            return [(entry.tables[0] if entry.tables else self.primary.spec.name, np.flatnonzero(opened.usable))]
        names = entry.tables or (self.primary.spec.name,)
        return [(name, np.flatnonzero(opened.usable & (entry.table == place))) for place, name in enumerate(names)]

    def _keys(self, entry: InsertEntry) -> Keys:
        if entry.key is None:
            return make_keys(self.shard, entry.writer, entry.first_ordinal, entry.items)
        keys = entry.key.copy()
        missing = keys == 0
        keys[missing] = make_keys(self.shard, entry.writer, entry.first_ordinal, int(missing.sum()))
        return keys

    # --- changes ---------------------------------------------------------------------------------------------------------

    def update(self, entry: UpdateEntry) -> npt.NDArray[np.bool_]:
        """Set priorities by key, in whatever table; bad ones are refused and counted. Returns which keys [K] are known."""
        self.primary.counters["priorities_refused"] += entry.refused
        found = np.zeros(len(entry.keys), np.bool_)
        for table in self.tables.values():
            found |= table.update(entry.keys, entry.priority)
        return found

    def delete(self, entry: DeleteEntry) -> npt.NDArray[np.bool_]:
        """Remove items by key, in whatever table, or all of one table. Returns which keys [K] are known."""
        if entry.reset in self.tables:
            self.tables[entry.reset].reset()
        found = np.zeros(len(entry.keys), np.bool_)
        for table in self.tables.values():
            found |= table.delete(entry.keys, missing=entry.missing)
        return found

    def change(self, entry: UpdateEntry | DeleteEntry) -> None:
        """Update or delete what is there; keys that are unknown are counted."""
        found = self.update(entry) if isinstance(entry, UpdateEntry) else self.delete(entry)
        self.primary.counters["keys_stale"] += len(found) - int(np.count_nonzero(found))

    def without_items_of(self, name: str, entry: InsertEntry) -> InsertEntry:
        """The same rows without the items for the table `name`; those for others keep their keys."""
        names = entry.tables or (self.primary.spec.name,)
        if name not in names:
            return entry
        place = np.zeros(entry.items, np.uint8) if entry.table is None else entry.table
        kept = place != names.index(name)
        columns = {column: value[kept] for column in ITEM_COLUMNS if (value := getattr(entry, column)) is not None}
        return replace(entry, **columns, key=self._keys(entry)[kept])

    def forget_writer(self, writer: int) -> None:
        """A writer that is gone for good; nothing happens while its entry is being admitted."""
        if self._opened is None or self._opened.entry.writer != writer:
            self.rows.forget_writer(writer)

    def take_garbage(self) -> ChunkAddresses:
        """Chunks that no item and no writer needs any more, since the last call."""
        return self.rows.take_garbage()
