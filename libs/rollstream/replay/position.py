"""How far a shard has come in its log, as it writes it down in Redis with every acknowledgement.

After a restart the entries up to here are applied again whatever the limiters say: they had been admitted. Writers that wait read
here why; the other shards of a table read here what its limiter must add.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from rollstream.store import Store, keys

__all__ = ["Position", "TableCounts", "parse_position", "read_position"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCounts:
    """What a limiter counts, of one table on one shard, or summed over several.

    Attributes:
        wanting: on how many shards writers wait.
    """

    inserted: int = 0
    sampled: int = 0
    size: int = 0
    wanting: int = 0

    def __add__(self, other: TableCounts) -> TableCounts:
        return TableCounts(**{name: value + getattr(other, name) for name, value in asdict(self).items()})


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """Where a shard stands.

    Attributes:
        log_id: the newest insert entry that is admitted, wholly or in part.
        offsets: how many of its items are in, by table; -1: all. Empty: the entry is wholly admitted.
        generation: number of the newest snapshot; 0: none was made.
        waits: for what the next insert waits, for people; empty: for nothing.
        tables: counts of each table over these rows, by name.
        inserted, sampled, size: counts of the table that the rows belong to.
    """

    log_id: str = "0-0"
    offsets: Mapping[str, int] = field(default_factory=dict)
    generation: int = 0
    waits: str = ""
    tables: Mapping[str, TableCounts] = field(default_factory=dict)
    inserted: int = 0
    sampled: int = 0
    size: int = 0

    def fields(self) -> dict[str, str]:
        tables = {name: list(asdict(counts).values()) for name, counts in self.tables.items()}
        return {
            "log_id": self.log_id,
            "offsets": json.dumps(dict(self.offsets)),
            "generation": str(self.generation),
            "waits": self.waits,
            "tables": json.dumps(tables),
            "inserted": str(self.inserted),
            "sampled": str(self.sampled),
            "size": str(self.size),
        }


def parse_position(reply: Mapping[bytes, bytes]) -> Position | None:
    """The position in a hash of Redis; None in an empty one, or in one of another release."""
    text = {name.decode(): value.decode() for name, value in reply.items()}
    if "tables" not in text:
        return None
    names = [field.name for field in fields(TableCounts)]  # an older release writes fewer
    tables = {name: TableCounts(**dict(zip(names, counts, strict=False))) for name, counts in json.loads(text["tables"]).items()}
    return Position(
        log_id=text["log_id"],
        offsets=json.loads(text["offsets"]),
        waits=text["waits"],
        tables=tables,
        **{name: int(text[name]) for name in ("generation", "inserted", "sampled", "size")},
    )


def read_position(store: Store, *, table_id: str, shard: int) -> Position | None:
    """What the shard wrote down last; None when it never did."""
    reply: Any = store.run("read the shard's position", lambda client: client.hgetall(keys.table_position(table_id, shard)))
    return parse_position(reply)
