"""What the other shards of a table have counted: a limiter is for the whole table, and each shard adds theirs to its own.

Each shard writes its counts down with its position; one pipeline reads those of all tables. A count may be `LOOK_EVERY_S` and the
time between two acknowledgements old, so that the two sides of a limiter may drift apart by what happens meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rollstream.replay.position import TableCounts, parse_position
from rollstream.store import Store, keys
from rollstream_replay.served_rows import ServedRows

__all__ = ["LOOK_EVERY_S", "apply_counts", "read_counts", "wanted_positions"]

LOOK_EVERY_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """A position to be read: of which row space, on which shard."""

    rows_id: str
    shard: int


def wanted_positions(served: Iterable[ServedRows]) -> list[_Place]:
    """Positions of other shards that matter here."""
    return [
        _Place(rows_id=rows.table_id, shard=shard)
        for rows in served
        for shard in range(rows.shard.table.spec.shards)
        if shard != rows.shard.shard
    ]


def read_counts(store: Store, places: list[_Place]) -> dict[str, dict[str, TableCounts]]:
    """Sums over the other shards, by row space and name of the table; waits for Redis."""

    def operation(client: Any) -> Any:
        with client.pipeline(transaction=False) as pipeline:
            for place in places:
                pipeline.hgetall(keys.table_position(place.rows_id, place.shard))
            return pipeline.execute()

    replies = store.run("read what other shards have counted", operation)
    summed: dict[str, dict[str, TableCounts]] = {place.rows_id: {} for place in places}
    for place, reply in zip(places, replies, strict=True):
        position = parse_position(reply)
        for name, counts in (position.tables if position else {}).items():
            summed[place.rows_id][name] = summed[place.rows_id].get(name, TableCounts()) + counts
    return summed


def apply_counts(rows: ServedRows, summed: Mapping[str, TableCounts]) -> bool:
    """Hand the sums to the limiters; True when one of them may let more happen than before."""
    tables = [table.table for table in rows.tables.values()]
    heard = [table.limiter.hear(summed.get(table.spec.name, TableCounts())) for table in tables]
    return any(heard)
