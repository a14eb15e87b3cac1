"""The index of a shard alone, in this process, without Redis and network: what one batch of inserts, samples and updates costs, by size.

Inserts run against a full table, so each of them also removes an item and lets go of its row.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rollstream.clock import Clock
from rollstream.replay import MinSize, Prioritized, TableSpec, Uniform
from rollstream.replay.group import TableGroup
from rollstream.replay.log import InsertEntry, UpdateEntry
from rollstream.seeding import child_generator
from rollstream_replay.bench.payloads import Payload

__all__ = ["INDEX_ITEMS", "IndexLoad", "index_figures"]

INDEX_ITEMS = (10_000, 100_000, 1_000_000, 10_000_000)
BATCH_ITEMS = 256
FILL_ITEMS = 65_536
ENVIRONMENTS = 8
WARM_UP_BATCHES = 50
KEY_BATCHES = 64
EPISODE_ROWS = 1_024


def index_figures(
    *, table_items: Sequence[int], selectors: Sequence[str], seconds: float, clock: Clock, say: Callable[[str], None]
) -> list[dict[str, Any]]:
    """Items per second of each operation, for each selector at each size."""
    found = []
    for selector in selectors:
        for items in table_items:
            load = IndexLoad(selector=selector, items=items, clock=clock)
            figures = load.measure(seconds=seconds)
            say(
                f"index, {selector}, {items:,} items: {figures['inserts_per_s']:,.0f} inserts, "
                f"{figures['samples_per_s']:,.0f} samples, {figures['updates_per_s']:,.0f} updates a second"
            )
            found.append(figures)
            del load
            gc.collect()
    return found


class IndexLoad:
    """One full table in this process, and what is done to it."""

    def __init__(self, *, selector: str, items: int, clock: Clock, batch_items: int = BATCH_ITEMS) -> None:
        self.items = items
        self.selector = selector
        self.batch_items = batch_items
        self._clock = clock
        self._sequence = 0
        self._end = 0
        spec = TableSpec(
            name="replay",
            sampler=Uniform() if selector == "uniform" else Prioritized(exponent=0.8),
            limiter=MinSize(),
            max_items=items,
            rows=Payload(payload_bytes=400).row_spec,  # type: ignore[arg-type]
        )
        self.group = TableGroup(spec)
        self.fill_s = self._fill()
        self._generator = child_generator(0, "bench", "index")
        self._keys = [self.group.primary.sample(batch_items).keys for _ in range(KEY_BATCHES)]
        for keys in self._keys:
            self.update(keys)

    def _fill(self) -> float:
        began_s = self._clock.monotonic_s()
        while self.group.primary.size < self.items:
            left = self.items - self.group.primary.size
            self.insert(max(ENVIRONMENTS, min(FILL_ITEMS, left)))
        return self._clock.monotonic_s() - began_s

    def insert(self, items: int) -> int:
        """One log entry with about `items` new rows, each of them an item."""
        return self.take(self.next_entry(items))

    def take(self, entry: InsertEntry) -> int:
        """Admit an entry."""
        self.group.begin(entry)
        inserted = self.group.admit()
        self.group.take_garbage()
        return inserted

    def next_entry(self, items: int) -> InsertEntry:
        """What the log would give next."""
        rows = items // ENVIRONMENTS
        env = np.repeat(np.arange(ENVIRONMENTS, dtype=np.uint32), rows)
        start = np.tile(np.arange(self._end, self._end + rows, dtype=np.uint64), ENVIRONMENTS)
        begins = np.arange(-(-self._end // EPISODE_ROWS) * EPISODE_ROWS, self._end + rows, EPISODE_ROWS, dtype=np.uint64)
        ordinal = self._end * ENVIRONMENTS
        self._end += rows
        self._sequence += 1
        end = np.full(ENVIRONMENTS, self._end, np.uint64)
        count = rows * ENVIRONMENTS
        return InsertEntry(
            writer=1,
            sequence=self._sequence,
            keep=end,
            end=end,
            start=start,
            env=env,
            length=np.ones(count, np.uint32),
            version=np.ones(count, np.uint32),
            episode_env=np.repeat(np.arange(ENVIRONMENTS, dtype=np.uint32), len(begins)),
            episode_start=np.tile(begins, ENVIRONMENTS),
            first_ordinal=ordinal & 0xFFFFFFFF,
        )

    def sample(self) -> int:
        """One batch."""
        return len(self.group.primary.sample(self.batch_items).keys)

    def update(self, keys: Any = None) -> int:
        """New priorities for one batch of items that are there."""
        if keys is None:
            keys = self._keys[self._generator.integers(KEY_BATCHES)]
        priority = self._generator.random(len(keys), dtype=np.float32)
        self.group.update(UpdateEntry(keys=keys, priority=priority))
        return len(keys)

    def measure(self, *, seconds: float) -> dict[str, Any]:
        """Items per second of each operation."""
        return {
            "selector": self.selector,
            "items": self.group.primary.size,
            "samples_per_s": self._rate(self.sample, seconds),
            "updates_per_s": self._rate(self.update, seconds),
            "inserts_per_s": self._insert_rate(seconds),
            "fill_items_per_s": round(self.items / self.fill_s),
        }

    def _rate(self, once: Callable[[], int], seconds: float) -> int:
        for _ in range(WARM_UP_BATCHES):
            once()
        count = 0
        began_s = now_s = self._clock.monotonic_s()
        while now_s - began_s < seconds:
            count += once()
            now_s = self._clock.monotonic_s()
        return round(count / (now_s - began_s))

    def _insert_rate(self, seconds: float) -> int:
        """Without the time in which the entries are made."""
        count, spent_s = 0, -1.0
        while spent_s < seconds:
            entries = [self.next_entry(self.batch_items) for _ in range(WARM_UP_BATCHES)]
            began_s = self._clock.monotonic_s()
            inserted = sum(map(self.take, entries))
            if spent_s < 0.0:
                spent_s = 0.0  # the first time warms up
            else:
                count += inserted
                spent_s += self._clock.monotonic_s() - began_s
        return round(count / spent_s)
