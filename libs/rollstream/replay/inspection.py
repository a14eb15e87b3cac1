"""A look into the index of a table: its numbers, some of its items with their rows decoded, how its priorities are spread.

What a shard's service answers over HTTP and a `LocalReplay` in the process is the same, so it is made here.
"""

from __future__ import annotations

import math
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from rollstream.replay.row_fetch import FetchedRows
from rollstream.replay.samples import SampledItems
from rollstream.replay.shard import TableShard
from rollstream.replay.table import Table

__all__ = ["ItemOrder", "choose_items", "describe_index", "describe_items", "describe_limiter", "priority_histogram"]

ItemOrder: TypeAlias = Literal["priority", "lowest", "newest", "oldest"]
VALUES_SHOWN = 16
"""Values of one column of one row; longer ones are cut, and their shape is told."""


def describe_index(shard: TableShard, table_id: str) -> dict[str, Any]:
    """Counters, sizes and spec of one of the tables of `shard`: plain numbers first, then words."""
    index = shard.tables[table_id]
    limiter, spec, counters, space = index.limiter, index.spec, index.counters, shard.group.rows
    held_rows, held_bytes = space.references.held * spec.chunk_rows, index.held_bytes()
    return {
        "items": index.size,
        "max_items": spec.max_items,
        "inserted": limiter.inserted,
        "sampled": limiter.sampled,
        "samples_per_insert": limiter.sampled / limiter.inserted if limiter.inserted else 0.0,
        "unique_items_sampled": counters["items_ever_sampled"],
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
        "episodes": space.runs.alive,
        "episodes_deleted": space.runs.deleted,
        "rows_written": space.row_clock,
        "writers": len(space.streams),
        "max_priority": index.max_priority,
        "newest_version": index.newest_version,
        "bytes": held_bytes if shard.table_id == table_id else 0,
        "bytes_at_full": spec.predicted_bytes(table_id),
        "bytes_per_row": held_bytes / held_rows if held_rows else 0.0,
        "index_bytes_at_full": spec.predicted_index_bytes(),
        "id": table_id,
        "shard": shard.shard,
        "rows_of": shard.table_id,
        "writers_wait_for": shard.insert_waits_for(),
        "samplers_wait_for": index.sample_waits_for(1),
        "spec": spec.model_dump(mode="json"),
    }


def describe_limiter(shard: TableShard, table_id: str) -> dict[str, Any]:
    """The limiter's counters and bounds, and who may go on."""
    index = shard.tables[table_id]
    limiter, batch_items = index.limiter, index.spec.batch_items
    elsewhere = limiter.elsewhere
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
        "writers_wait_for": shard.insert_waits_for(),
        "samplers_wait_for": index.sample_waits_for(batch_items),
    }


def choose_items(table: Table, *, order: ItemOrder, limit: int) -> SampledItems:
    """Up to `limit` items, and with which probability one draw now gives each."""
    live = table.items.live()
    if order == "newest":
        live = live[::-1]
    elif order in ("priority", "lowest"):
        sign = -1.0 if order == "priority" else 1.0
        live = live[np.argsort(sign * table.items.priority[live], kind="stable")]
    items, _ = table.get(table.items.key[live[:limit]])
    return items


def describe_items(items: SampledItems, fetched: FetchedRows) -> list[dict[str, Any]]:
    """Address, priority and use of each item, and the first values of each column of its rows; null when they are gone."""
    return [
        {
            "key": int(items.keys[at]),
            "priority": float(items.priority[at]),
            "probability": float(items.probability[at]),
            "times_sampled": int(items.times_sampled[at]),
            "writer": int(items.writer[at]),
            "environment": int(items.env[at]),
            "start_row": int(items.start[at]),
            "length": int(items.length[at]),
            "lead": int(items.lead[at]),
            "version": int(items.version[at]),
            "age_rows": int(items.age_rows[at]),
            "rows": None if fetched.missing[at] else _decoded(fetched, at),
        }
        for at in range(len(items))
    ]


def priority_histogram(priority: npt.NDArray[np.float32], *, bins: int) -> dict[str, Any]:
    """Counts by `bins` bins of equal ratio from the least to the greatest priority above 0, and the number of zeros.

    >>> told = priority_histogram(np.array([0, 1, 1, 10, 100], np.float32), bins=2)
    >>> told["zeros"], told["edges"], told["counts"]
    (1, [1.0, 10.0, 100.0], [2, 2])
    """
    positive = priority[priority > 0].astype(np.float64)
    told: dict[str, Any] = {
        "items": len(priority),
        "zeros": len(priority) - len(positive),
        "min": float(priority.min()) if len(priority) else None,
        "max": float(priority.max()) if len(priority) else None,
        "mean": float(priority.mean(dtype=np.float64)) if len(priority) else None,
        "edges": [],
        "counts": [],
    }
    if not len(positive):
        return told
    low, high = float(positive.min()), float(positive.max())
    edges = np.geomspace(low, high, bins + 1) if high > low else np.array([low, high])
    edges[0], edges[-1] = low, high
    at = np.clip(np.searchsorted(edges, positive, side="right") - 1, 0, len(edges) - 2)
    counts = np.bincount(at, minlength=len(edges) - 1)
    return {**told, "edges": edges.tolist(), "counts": counts.tolist()}


def _decoded(fetched: FetchedRows, at: int) -> list[dict[str, Any]]:
    there = np.flatnonzero(fetched.mask[at])
    return [{name: _short(column[at, row]) for name, column in fetched.rows.items()} for row in there.tolist()]


def _short(value: npt.NDArray[Any]) -> Any:
    """A JSON value: numbers that are not finite as text, long arrays cut with their size told."""
    flat = np.asarray(value).reshape(-1)
    shown = [_plain(entry) for entry in flat[:VALUES_SHOWN].tolist()]
    if np.ndim(value) == 0:
        return shown[0]
    return shown if flat.size <= VALUES_SHOWN else {"first": shown, "shape": list(np.shape(value))}


def _plain(entry: Any) -> Any:
    if isinstance(entry, float) and not np.isfinite(entry):
        return str(entry)
    return entry if isinstance(entry, int | float | bool | str) else str(entry)


def _finite(bound: float) -> float | None:
    """JSON has no infinity: no bound is null."""
    return bound if math.isfinite(bound) else None
