"""`rollstream replay load` and `dump`: between files and the tables of a cell. Rows go straight to and from its Redis."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rollstream.config import load
from rollstream.errors import ConfigError, TableError
from rollstream.replay import TableClient, TableSpec, TableWriter
from rollstream.replay.offline import LoadResult, OfflineRows, load_minari, load_npz, write_rows
from rollstream.store import keys
from rollstream_cli.replay.item_rule import item_rule
from rollstream_cli.replay.redis_of_cell import CellRedis
from rollstream_cli.replay.settings import changed_fields

__all__ = ["Creation", "columns_of", "create_table", "known_tables", "load_rows", "read_source", "require_table", "table_id_of"]

OFFLINE_EXPERIMENT = "offline"
"""Experiment of tables that are created under a bare name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Creation:
    """How a table for recorded data is made: settings as on the command line, `name=value`."""

    changes: Sequence[str]
    max_items: int | None
    shards: int


def read_source(
    source: str, *, rename: Mapping[str, str], drop: Sequence[str], float32: bool, keep: Sequence[str] = ()
) -> OfflineRows:
    """Rows of a NumPy archive (a file), or of a Minari dataset (an id or a folder); `keep` as in `load_npz`."""
    path = Path(source)
    if path.is_file() or path.suffix == ".npz":
        return load_npz(path, rename=rename, drop=drop, keep=keep, float32=float32)
    if rename or drop:
        raise ConfigError(f"columns of a Minari dataset keep their names, so --rename and --drop do not go with {source}")
    return load_minari(source, float32=float32)


def table_id_of(name: str) -> str:
    """Id of a table that is to be made."""
    return name if "." in name else f"{OFFLINE_EXPERIMENT}.{name}"


def known_tables(redis: CellRedis) -> dict[str, TableSpec]:
    """All tables of the cell, by id."""
    stored: Any = redis.store.run("read the tables of the cell", lambda client: client.hgetall(keys.tables()))
    return {table_id.decode(): TableSpec.model_validate_json(text) for table_id, text in stored.items()}


def columns_of(redis: CellRedis, name: str) -> tuple[str, ...]:
    """Names of the columns of the table that is meant; none when there is no such table."""
    for table_id, spec in known_tables(redis).items():
        if name in (table_id, table_id.split(".", 1)[-1]):
            return tuple(spec.row_spec.dtype.names or ())
    return ()


def require_table(redis: CellRedis, name: str) -> str:
    """Id of the table that is meant: an id, or a name that only one experiment has."""
    known = sorted(known_tables(redis))
    found = [table_id for table_id in known if table_id == name] or [
        table_id for table_id in known if table_id.split(".", 1)[-1] == name
    ]
    if len(found) != 1:
        raise TableError(f"there is no table {name!r}; there are: {', '.join(known) or 'none'} (--create makes one of the data)")
    return found[0]


def create_table(redis: CellRedis, name: str, *, data: OfflineRows, creation: Creation) -> str:
    """Make a table with the columns of the data; returns its id.

    Raises:
        ConfigError: a setting cannot work, or there is such a table with other settings.
    """
    table_id = table_id_of(name)
    document = {
        "name": table_id.split(".", 1)[1],
        "max_items": creation.max_items or max(1, len(data.rows)),
        "shards": creation.shards,
        "rows": data.row_spec,
    }
    present = load(TableSpec, document, what="table").model_dump(mode="json")
    spec = load(TableSpec, {**present, **changed_fields(creation.changes, present=present)}, what="table")
    with closing(TableClient(redis.store, redis.address, table_id=table_id, clock=redis.clock)) as client:
        client.create(spec)
    return table_id


def load_rows(
    redis: CellRedis, table_id: str, *, data: OfflineRows, items: str, deadline_s: float, report: Callable[[int], None]
) -> LoadResult:
    """Write recorded rows to a table, through one writer for each of its shards.

    Args:
        items: the item rule, as `item_rule` reads it; empty: transitions of a recording with episodes, else each row for itself.
    """
    spec = known_tables(redis)[table_id]
    rule = item_rule(items or ("transition" if data.episodic else "each_row"))
    fitted = data.fitted(spec.row_spec)
    with ExitStack() as open_writers:
        writers = [
            open_writers.enter_context(
                closing(
                    TableWriter(
                        redis.store,
                        redis.address,
                        table_id=table_id,
                        shard=shard,
                        spec=spec,
                        rule=rule,
                        environments=1,
                        clock=redis.clock,
                    )
                )
            )
            for shard in range(spec.shards)
        ]
        return write_rows(fitted, writers, clock=redis.clock, deadline_s=deadline_s, report=report)
