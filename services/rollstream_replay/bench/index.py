"""The index of a shard alone, in this process, without Redis and network: what one batch of inserts, samples and updates costs, by size.

Inserts run against a full table, so each of them also removes an item and lets go of its row.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from functools import partial
from time import process_time
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
CALLS = 50
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
                f"index, {selector}, {items:,} items: {figures['inserts_per_cpu_s']:,} inserts, "
                f"{figures['samples_per_cpu_s']:,} samples, {figures['updates_per_cpu_s']:,} updates a second of processor time"
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
        """Items per second of each operation, and per second of processor time, which other programs do not lower."""
        figures: dict[str, Any] = {"selector": self.selector, "items": self.group.primary.size}
        for name, calls in (
            ("samples", lambda: [self.sample] * CALLS),
            ("updates", lambda: [self.update] * CALLS),
            ("inserts", lambda: [partial(self.take, self.next_entry(self.batch_items)) for _ in range(CALLS)]),
        ):
            figures |= self._rates(name, calls, seconds)
        return figures | {"fill_items_per_s": round(self.items / self.fill_s)}

    def _rates(self, name: str, calls: Callable[[], Sequence[Callable[[], int]]], seconds: float) -> dict[str, int]:
        """Of `calls()`, again and again; what makes them is not timed, and the first round warms up."""
        count, wall_s, cpu_s = 0, -1.0, 0.0
        while wall_s < seconds:
            some = calls()
            began_s, cpu_began_s = self._clock.monotonic_s(), process_time()
            items = sum(call() for call in some)
            if wall_s < 0.0:
                wall_s = 0.0
                continue
            count += items
            wall_s += self._clock.monotonic_s() - began_s
            cpu_s += process_time() - cpu_began_s
        return {f"{name}_per_s": round(count / wall_s), f"{name}_per_cpu_s": round(count / cpu_s)}
