"""Files of whole tables: NumPy archives for everybody, and snapshots that `load` restores exactly, with keys, priorities and counters."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rollstream.errors import ConfigError
from rollstream.replay import TableClient
from rollstream.replay.export_parts import parts_of_file
from rollstream.replay.offline import dump_npz, shard_of_index
from rollstream.replay.shard_link import ShardLink
from rollstream.store import ChunkReader
from rollstream_cli.replay.offline import known_tables, require_table, table_id_of
from rollstream_cli.replay.redis_of_cell import CellRedis
from rollstream_cli.replay.render import size
from rollstream_cli.replay.settings import changed_fields

__all__ = ["FileResult", "dump_file", "is_snapshot", "load_snapshot"]

MAGIC = b"RSEX"
INDEX_DEADLINE_S = 300.0
"""How long a shard may take to give the index of a large table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileResult:
    """What was written or restored."""

    table_id: str
    path: str
    items: int
    bytes: int
    took_s: float

    @property
    def told(self) -> str:
        """For people."""
        rate = self.bytes / self.took_s / 1e6 if self.took_s else 0.0
        return f"{self.table_id}  {self.items:,} items, {size(self.bytes)} in {self.took_s:.2f} s ({rate:,.0f} MB/s): {self.path}"

    def to_json(self) -> dict[str, Any]:
        """As `--json` prints it."""
        return {"id": self.table_id, "path": self.path, "items": self.items, "bytes": self.bytes, "took_s": self.took_s}


def is_snapshot(path: Path) -> bool:
    """Whether the file is one of ours."""
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def dump_file(redis: CellRedis, table_id: str, path: Path) -> FileResult:
    """Write a table to a file: a NumPy archive where its name ends so, else a snapshot.

    Raises:
        ConfigError: the file cannot be written.
    """
    began_s = redis.clock.monotonic_s()
    items = _dump_archive(redis, table_id, path) if path.suffix == ".npz" else _dump_snapshot(redis, table_id, path)
    took_s = redis.clock.monotonic_s() - began_s
    return FileResult(table_id=table_id, path=str(path), items=items, bytes=path.stat().st_size, took_s=took_s)


def load_snapshot(redis: CellRedis, path: Path, *, name: str, create: bool, changes: Sequence[str]) -> FileResult:
    """Put a table's items in the place of what it holds.

    Args:
        create: make the table, with the settings that the file has.
        changes: of these settings, as on the command line.

    Raises:
        ConfigError: the table that is to be made is there already.
    """
    began_s = redis.clock.monotonic_s()
    table_id = table_id_of(name) if create else require_table(redis, name)
    fields: dict[str, Any] = {}
    if create:
        if table_id in known_tables(redis):
            raise ConfigError(f"table {table_id} exists already; load into it without --create, or choose another name")
        stored = next(parts_of_file(path, what=f"file {path}")).content.facts["spec"]
        fields = {**changed_fields(changes, present=stored), "name": table_id.split(".", 1)[1]}
    with closing(TableClient(redis.store, redis.address, table_id=table_id, clock=redis.clock)) as client:
        items = client.restore_from(path, changes=fields)
    took_s = redis.clock.monotonic_s() - began_s
    return FileResult(table_id=table_id, path=str(path), items=items, bytes=path.stat().st_size, took_s=took_s)


def _dump_archive(redis: CellRedis, table_id: str, path: Path) -> int:
    spec = known_tables(redis)[table_id]
    rows_id = f"{table_id.split('.', 1)[0]}.{spec.rows_of or spec.name}"
    with ExitStack() as opened:
        reader = opened.enter_context(closing(ChunkReader(redis.address, clock=redis.clock)))
        shards = []
        for number in range(spec.shards):
            link = opened.enter_context(closing(ShardLink(redis.store, shard=number, clock=redis.clock)))
            index = link.request("GET", f"/v1/tables/{table_id}/snapshot", deadline_s=INDEX_DEADLINE_S)
            shards.append(shard_of_index(index, reader=reader, rows_id=rows_id, shard=number, spec=spec))
        return dump_npz(path, shards)


def _dump_snapshot(redis: CellRedis, table_id: str, path: Path) -> int:
    with closing(TableClient(redis.store, redis.address, table_id=table_id, clock=redis.clock)) as client:
        return int(client.export_to(path)["items"])
