"""Exports and restores of a table for a client: as one buffer for a checkpoint, or through a file of any size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

from rollstream import __version__
from rollstream.clock import Clock, Deadline
from rollstream.config import load
from rollstream.errors import ConfigError, SchemaMismatch
from rollstream.replay.export import ShardExport
from rollstream.replay.export_parts import ExportPart, parts_of_buffer, parts_of_file, write_file, written_buffers
from rollstream.replay.packed import PackedArrays, pack, unpack
from rollstream.replay.restore import Restoration
from rollstream.replay.spec import TableSpec
from rollstream.replay.table_control import TableControl
from rollstream.replay.table_shards import TableShards, rows_table
from rollstream.store import Address, ChunkReader, Store

__all__ = ["RestoreLimiter", "TableExport", "TableExports"]

RestoreLimiter: TypeAlias = Literal["reset", "keep"]
STORED = ("chunk_rows", "resolved_encoding", "delta")
"""What says how rows are stored: they are copied as they are, so both sides must agree."""


class TableExport:
    """An export that was begun: items as they were then; rows are fetched when it is written, once.

    Args:
        indices: of the shards, in order.
        chunk_bytes: stored bytes of one chunk; a mean where they vary.
        reader: for the rows; closed at the end.
    """

    def __init__(
        self,
        *,
        table_id: str,
        spec: TableSpec,
        indices: Iterable[PackedArrays],
        rows_max_bytes: int | None,
        chunk_bytes: float,
        reader: ChunkReader,
    ) -> None:
        self._table_id = table_id
        self._spec = spec
        self._indices = indices
        self._rows_max_bytes = rows_max_bytes
        self._chunk_bytes = chunk_bytes
        self._reader = reader
        self._last: dict[str, Any] = {}

    def to_bytes(self) -> bytes:
        """The export as one buffer."""
        return b"".join(buffer for buffers in written_buffers(self._parts()) for buffer in buffers)

    def to_file(self, path: Path) -> dict[str, Any]:
        """The export as a file, in bounded memory; returns the facts of its last part."""
        write_file(path, self._parts())
        return self._last

    def _parts(self) -> Iterator[ExportPart]:
        spec, table_id = self._spec, self._table_id
        facts = {"table": table_id, "shards": spec.shards, "spec": spec.model_dump(mode="json"), "release": __version__}
        yield ExportPart(kind="TABL", content=PackedArrays(facts=facts, arrays={}))
        most = None if self._rows_max_bytes is None else self._rows_max_bytes // spec.shards
        items = rows_bytes = 0
        try:
            for shard, index in enumerate(self._indices):
                export = ShardExport(
                    index,
                    reader=self._reader,
                    rows_id=rows_table(table_id, spec),
                    shard=shard,
                    spec=spec,
                    chunk_bytes=self._chunk_bytes,
                )
                yield from export.parts(rows_max_bytes=most)
                items, rows_bytes = items + export.items, rows_bytes + export.rows_bytes
        finally:
            self._reader.close()
        self._last = {"table": table_id, "items": items, "rows_bytes": rows_bytes, "shards": spec.shards}
        yield ExportPart(kind="LAST", content=PackedArrays(facts=self._last, arrays={}))


class TableExports:
    """Exports and restores one table."""

    def __init__(self, shards: TableShards, *, control: TableControl, store: Store, address: Address, clock: Clock) -> None:
        self._shards = shards
        self._control = control
        self._store = store
        self._address = address
        self._clock = clock

    def begin(self, *, rows_max_bytes: int | None, deadline_s: float, at_once: bool) -> TableExport:
        """An export of the table as it is now.

        Args:
            at_once: ask all shards for their items now; else each when its turn comes, which needs less memory.
        """
        deadline = Deadline(self._clock, after_s=deadline_s)
        self._shards.take_spec(None)
        spec = self._shards.spec(deadline_s=deadline_s)
        chunk_bytes: float = spec.chunk_bytes
        if spec.resolved_encoding != "raw":
            told = self._control.describe(deadline_s=deadline.remaining_s())
            chunk_bytes = told["bytes_per_row"] * spec.chunk_rows or chunk_bytes
        indices: Iterable[PackedArrays] = (
            unpack(
                link.request("GET", f"{self._shards.path}/snapshot", deadline_s=deadline.remaining_s()),
                what=f"index of table {self._shards.table_id}",
            )
            for link in self._shards.links(deadline_s=deadline.remaining_s())
        )
        return TableExport(
            table_id=self._shards.table_id,
            spec=spec,
            indices=list(indices) if at_once else indices,
            rows_max_bytes=rows_max_bytes,
            chunk_bytes=chunk_bytes,
            reader=ChunkReader(self._address, clock=self._clock, deadline_s=deadline_s / 3),
        )

    def restore(
        self,
        source: bytes | bytearray | memoryview | Path,
        *,
        changes: Mapping[str, Any] | None,
        limiter: RestoreLimiter,
        deadline_s: float,
    ) -> int:
        """Restore from a buffer or a file; returns the number of items."""
        if isinstance(source, Path):
            parts = parts_of_file(source, what=f"export {source}")
        else:
            parts = parts_of_buffer(source, what=f"export of table {self._shards.table_id}")
        return self._restore(parts, changes or {}, limiter, deadline_s)

    # --- inside ----------------------------------------------------------------------------------------------------------

    def _restore(
        self, parts: Iterator[ExportPart], changes: Mapping[str, Any], limiter: RestoreLimiter, deadline_s: float
    ) -> int:
        deadline = Deadline(self._clock, after_s=deadline_s)
        if limiter not in ("reset", "keep"):
            raise ConfigError(f"limiter of a restore is 'reset' or 'keep', got {limiter!r}")
        first = next(parts)
        if first.kind != "TABL":
            raise SchemaMismatch(f"export for table {self._shards.table_id} begins with a part {first.kind}: it is damaged")
        exported = load(TableSpec, first.content.facts["spec"], what="spec of the export")
        spec = self._prepared(exported, changes, deadline)
        restoration = Restoration(
            store=self._store,
            address=self._address,
            clock=self._clock,
            rows_id=rows_table(self._shards.table_id, spec),
            spec=spec,
            from_shards=exported.shards,
            what=f"export of table {first.content.facts['table']}",
            write_deadline_s=deadline_s / 3,
        )
        try:
            for part in parts:
                restoration.take(part)
        finally:
            restoration.close()
        query = "?keep_limiter=true" if limiter == "keep" else ""
        count = 0
        for link, index in zip(self._shards.links(deadline_s=deadline.remaining_s()), restoration.indices(), strict=True):
            body = pack(index.facts, index.arrays)
            reply = link.request("PUT", f"{self._shards.path}/snapshot{query}", body, deadline_s=deadline.remaining_s())
            count += int(reply)
        return count

    def _prepared(self, exported: TableSpec, changes: Mapping[str, Any], deadline: Deadline) -> TableSpec:
        """The table that takes the items: as it is, changed, or made of the export's settings."""
        self._shards.take_spec(None)
        there = self._shards.spec_if_there(deadline_s=deadline.remaining_s())
        if there is None:
            document = {**exported.model_dump(mode="json"), **changes}
            spec = load(TableSpec, document, what="spec of the restored table")
        else:
            spec = there
        spec.row_spec.require_equal(exported.row_spec, ours=f"table {self._shards.table_id}", theirs="the export")
        for name in STORED:
            if getattr(spec, name) != getattr(exported, name):
                raise SchemaMismatch(
                    f"{name} of table {self._shards.table_id} is {getattr(spec, name)!r}, that of the export {getattr(exported, name)!r}; "
                    "rows are copied as they are stored, so make the table with the export's"
                )
        if there is None:
            self._control.create(spec, deadline_s=deadline.remaining_s())
        elif changes:
            spec = self._control.change(changes, deadline_s=deadline.remaining_s())
        return spec
