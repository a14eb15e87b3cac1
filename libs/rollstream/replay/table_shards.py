"""The shards of one table, as a client sees them: its spec, as Redis has it, and a link to each shard."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from rollstream.errors import TableError
from rollstream.replay.shard_link import Link
from rollstream.replay.spec import TableSpec
from rollstream.store import Store, keys

__all__ = ["TableShards", "rows_table"]


def rows_table(table_id: str, spec: TableSpec) -> str:
    """Id of the table that the rows belong to: the table itself, unless it lies over the rows of another.

    >>> spec = TableSpec(name="recent", max_items=1, rows=[("a", "<f4", ())], rows_of="replay")
    >>> rows_table("run-1.recent", spec)
    'run-1.replay'
    """
    return table_id.removesuffix(spec.name) + spec.rows_of if spec.rows_of else table_id


class TableShards:
    """Spec and links, found out when first needed. Thread-safe.

    Args:
        make_link: makes a link to the shard of a number.
    """

    def __init__(self, store: Store, *, table_id: str, make_link: Callable[[int], Link]) -> None:
        self.table_id = table_id
        self.path = f"/v1/tables/{table_id}"
        self.store = store
        self._make_link = make_link
        self._lock = threading.Lock()
        self._links: list[Link] = []
        self._spec: TableSpec | None = None

    def spec(self, *, deadline_s: float) -> TableSpec:
        """Settings of the table, as they were when this was first asked or last told.

        Raises:
            TableError: there is no such table; lists those that there are.
            StoreUnavailable: Redis was not there in time.
        """
        if self._spec is None:
            self._spec = self._stored(deadline_s)
        return self._spec

    def spec_if_there(self, *, deadline_s: float) -> TableSpec | None:
        """As `spec`, None while there is no such table."""
        try:
            return self.spec(deadline_s=deadline_s)
        except TableError:
            return None

    def take_spec(self, spec: TableSpec | None) -> None:
        """The table has these settings now; None: they are to be asked again."""
        self._spec = spec

    def rows_id(self, *, deadline_s: float) -> str:
        """Id of the table that the rows belong to."""
        return rows_table(self.table_id, self.spec(deadline_s=deadline_s))

    def links(self, *, deadline_s: float) -> list[Link]:
        """Links to all shards; each may be used by any thread, for whole requests."""
        return self.links_to(self.spec(deadline_s=deadline_s).shards)

    def links_to(self, shards: int) -> list[Link]:
        """Links to the shards 0 to `shards` - 1."""
        with self._lock:
            while len(self._links) < shards:
                self._links.append(self._make_link(len(self._links)))
            return self._links[:shards]

    def own_links(self, *, deadline_s: float) -> list[Link]:
        """New links to all shards, for the use of one thread, which closes them."""
        return [self._make_link(shard) for shard in range(self.spec(deadline_s=deadline_s).shards)]

    def close(self) -> None:
        """Close the links; they connect again when used again."""
        with self._lock:
            for link in self._links:
                link.close()

    def _stored(self, deadline_s: float) -> TableSpec:
        def operation(client: Any) -> tuple[bytes | None, list[bytes]]:
            stored = client.hget(keys.tables(), self.table_id)
            return stored, client.hkeys(keys.tables()) if stored is None else []

        stored, known = self.store.run("read the table's spec", operation, deadline_s=deadline_s)
        if stored is None:
            listed = ", ".join(sorted(name.decode() for name in known)) or "none"
            raise TableError(f"table {self.table_id} does not exist; create it first (there are: {listed})")
        return TableSpec.model_validate_json(stored)
