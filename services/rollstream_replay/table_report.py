"""What the API tells about a table: what its index says, and who waits at it."""

from __future__ import annotations

from typing import Any

from rollstream.replay import inspection
from rollstream_replay.served_rows import ServedRows
from rollstream_replay.served_table import ServedTable

__all__ = ["describe_limiter", "describe_table"]


def describe_table(rows: ServedRows, table: ServedTable) -> dict[str, Any]:
    """Numbers, limiter state and spec of `table`, one of the tables over `rows`."""
    blocked = rows.blocked(table.table_id)
    return {
        **inspection.describe_index(rows.shard, table.table_id),
        "orphans_swept": rows.orphans_swept,
        "samplers_waiting": len(table.samplers),
        "blocked_s": blocked.seconds if blocked else 0.0,
        "blocked": f"writers: {blocked.writers}; samplers: {blocked.samplers}" if blocked else "",
    }


def describe_limiter(rows: ServedRows, table: ServedTable) -> dict[str, Any]:
    """The limiter's numbers and bounds, who may go on, and who waits for how long."""
    blocked = rows.blocked(table.table_id)
    return {
        **inspection.describe_limiter(rows.shard, table.table_id),
        "writers_waiting": [{"writer": each.writer, "waited_s": each.waited_s} for each in rows.waiting_writers()],
        "samplers_waiting": [
            {"batch_items": each.batch_items, "waited_s": table.waited_s(each), "deadline_s": each.deadline_s}
            for each in table.samplers
        ],
        "blocked_s": blocked.seconds if blocked else 0.0,
    }
