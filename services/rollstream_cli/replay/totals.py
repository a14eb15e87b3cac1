"""A table over all its shards in a few numbers, and rates from two looks at it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rollstream_cli.replay.tables import ShardSays

__all__ = ["TableTotals", "rates", "totals", "who_waits"]

SUMMED = (
    "items",
    "inserted",
    "sampled",
    "evicted",
    "exhausted",
    "deleted",
    "bytes",
    "entries_waiting",
    "writers",
    "samplers_waiting",
    "priorities_updated",
    "priorities_refused",
    "keys_stale",
    "missing_rows",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableTotals:
    """Sums over the shards that answered.

    Attributes:
        counts: of `SUMMED`.
        max_items: of the whole table; 0 when no shard answered.
        bytes_at_full: predicted for the whole table.
        waits: who waits for what, in words.
        problems: shards that did not answer, and why.
    """

    table_id: str
    shards: int
    counts: Mapping[str, int]
    max_items: int
    bytes_at_full: int
    waits: tuple[str, ...]
    problems: tuple[str, ...]

    @property
    def ratio(self) -> float:
        """Samples per insert so far."""
        inserted = self.counts["inserted"]
        return self.counts["sampled"] / inserted if inserted else 0.0

    def to_json(self) -> dict[str, Any]:
        """As `--json` prints it."""
        return {
            "id": self.table_id,
            "shards": self.shards,
            **self.counts,
            "max_items": self.max_items,
            "samples_per_insert": self.ratio,
            "bytes_at_full": self.bytes_at_full,
            "waits": list(self.waits),
            "problems": list(self.problems),
        }


def totals(table_id: str, says: Sequence[ShardSays]) -> TableTotals:
    """Sums over what the shards say."""
    infos = [one.info for one in says if one.info is not None]
    specs = [info["spec"] for info in infos if isinstance(info.get("spec"), dict)]
    return TableTotals(
        table_id=table_id,
        shards=len(says),
        counts={name: sum(int(info.get(name) or 0) for info in infos) for name in SUMMED},
        max_items=max((int(spec["max_items"]) for spec in specs), default=0),
        bytes_at_full=max((int(info.get("bytes_at_full") or 0) for info in infos), default=0),
        waits=tuple(wait for one in says for wait in who_waits(one, alone=len(says) == 1)),
        problems=tuple(f"shard {one.shard}: {one.problem}" for one in says if one.info is None),
    )


def who_waits(says: ShardSays, *, alone: bool) -> list[str]:
    """`writers wait: ...`, `3 samplers wait: ...`; nothing for those who need not."""
    info = says.info or {}
    where = "" if alone else f"shard {says.shard}: "
    waits = []
    if info.get("writers_wait_for"):
        waits.append(f"{where}writers wait: {info['writers_wait_for']}")
    samplers = int(info.get("samplers_waiting") or 0)
    if samplers:
        reason = info.get("samplers_wait_for") or "their batch is larger than what may be sampled now"
        waits.append(f"{where}{samplers} {'sampler waits' if samplers == 1 else 'samplers wait'}: {reason}")
    if info.get("blocked"):
        waits.append(f"{where}both sides wait for each other: {info['blocked']}")
    return waits


def rates(now: TableTotals, before: TableTotals | None, *, over_s: float) -> tuple[float, float]:
    """Items inserted and sampled in a second between two looks; 0 at the first, or when a shard came back."""
    if before is None or over_s <= 0.0:
        return 0.0, 0.0
    inserted = now.counts["inserted"] - before.counts["inserted"]
    sampled = now.counts["sampled"] - before.counts["sampled"]
    return max(0, inserted) / over_s, max(0, sampled) / over_s
