"""What the API tells about a table: plain numbers first, then words."""

from __future__ import annotations

import math
from typing import Any

from rollstream_replay.served_rows import ServedRows
from rollstream_replay.served_table import ServedTable

__all__ = ["describe_limiter", "describe_table"]


def describe_table(rows: ServedRows, table: ServedTable) -> dict[str, Any]:
    """Numbers, limiter state and spec of `table`, one of the tables over `rows`."""
    shard, index = rows.shard, table.table
    limiter, spec, counters = index.limiter, index.spec, index.counters
    space = shard.group.rows
    primary = shard.table_id == table.table_id
    held_rows = space.references.held * spec.chunk_rows
    held_bytes = index.held_bytes()
    blocked = rows.blocked(table.table_id)
    return {
        "items": index.size,
        "max_items": spec.max_items,
        "inserted": limiter.inserted,
        "sampled": limiter.sampled,
        "samples_per_insert": limiter.sampled / limiter.inserted if limiter.inserted else 0.0,
        "sampleable": index.sampler.sampleable,
        "mass": index.sampler.mass,
        "evicted": counters["items_evicted"],
        "exhausted": counters["items_exhausted"],
        "deleted": counters["items_deleted"],
        "missing_rows": counters["items_missing"],
        "updated": counters["items_updated"],
        "gated": counters["items_gated"],
        "resets": counters["resets"],
        "priorities_updated": counters["priorities_updated"],
        "priorities_refused": counters["priorities_refused"],
        "keys_stale": counters["keys_stale"],
        "entries_waiting": shard.waiting_entries,
        "entries_repeated": space.counters["entries_repeated"],
        "entries_refused": space.counters["entries_refused"] + shard.entries_bad,
        "items_without_rows": space.counters["items_without_rows"],
        "items_without_table": space.counters["items_without_table"],
        "orphans_swept": rows.orphans_swept,
        "episodes": space.runs.alive,
        "episodes_deleted": space.runs.deleted,
        "rows_written": space.row_clock,
        "writers": len(space.streams),
        "samplers_waiting": len(table.samplers),
        "max_priority": index.max_priority,
        "newest_version": index.newest_version,
        "bytes": held_bytes if primary else 0,
        "bytes_at_full": spec.predicted_bytes(table.table_id),
        "bytes_per_row": held_bytes / held_rows if held_rows else 0.0,
        "index_bytes_at_full": spec.predicted_index_bytes(),
        "blocked_s": blocked.seconds if blocked else 0.0,
        "id": table.table_id,
        "shard": shard.shard,
        "rows_of": shard.table_id,
        "writers_wait_for": shard.insert_waits_for(),
        "samplers_wait_for": index.sample_waits_for(1),
        "blocked": f"writers: {blocked.writers}; samplers: {blocked.samplers}" if blocked else "",
        "spec": spec.model_dump(mode="json"),
    }


def describe_limiter(rows: ServedRows, table: ServedTable) -> dict[str, Any]:
    """The limiter's numbers and bounds, who may go on, and who waits for how long."""
    index = table.table
    limiter, batch_items = index.limiter, index.spec.batch_items
    elsewhere = limiter.elsewhere
    blocked = rows.blocked(table.table_id)
    return {
        "limiter": index.spec.limiter.model_dump(mode="json"),
        "size": index.size,
        "inserted": limiter.inserted,
        "sampled": limiter.sampled,
        "size_elsewhere": elsewhere.size,
        "inserted_elsewhere": elsewhere.inserted,
        "sampled_elsewhere": elsewhere.sampled,
        "samples_per_insert": limiter.samples_per_insert,
        "min_items": index.spec.limiter.min_items,
        "min_diff": _finite(limiter.min_diff),
        "max_diff": _finite(limiter.max_diff),
        "diff": limiter.diff,
        "batch_items": batch_items,
        "can_insert_one": limiter.can_insert(1, size=index.size),
        "can_insert_batch": limiter.can_insert(batch_items, size=index.size),
        "can_sample_one": index.can_sample(1),
        "can_sample_batch": index.can_sample(batch_items),
        "writers_wait_for": rows.shard.insert_waits_for(),
        "samplers_wait_for": index.sample_waits_for(batch_items),
        "writers_waiting": [{"writer": each.writer, "waited_s": each.waited_s} for each in rows.waiting_writers()],
        "samplers_waiting": [
            {"batch_items": each.batch_items, "waited_s": table.waited_s(each), "deadline_s": each.deadline_s}
            for each in table.samplers
        ],
        "blocked_s": blocked.seconds if blocked else 0.0,
    }


def _finite(bound: float) -> float | None:
    """JSON has no infinity: no bound is null."""
    return bound if math.isfinite(bound) else None
