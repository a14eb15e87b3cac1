"""A replay table in the memory of one process: the same index, limiter and item rules as a shard, with rows in a dictionary.

Made for debugging and determinism, not for speed: no server, no thread, nothing sent. (`LocalReplay` is for library users, and
needs a server process beside it, which a debugger would not stop.)
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.clock import Clock
from rollstream.errors import DeadlineExceeded
from rollstream.replay import TableGroup, TableSpec, WriteResult
from rollstream.replay.flush_entry import entry_of
from rollstream.replay.item_keys import make_keys
from rollstream.replay.log import InsertEntry, UpdateEntry
from rollstream.replay.open_rows import OpenRows
from rollstream.replay.rules import ItemRule
from rollstream.replay.run_batch import FetchedRows, RunBatch, RunLayout
from rollstream.replay.sample import Sample
from rollstream.replay.samples import SampledItems
from rollstream.spaces import Rollout

__all__ = ["MemoryTable", "MemoryWriter"]


class MemoryTable:
    """Implements `rollstream.learning.TableSource`; `writer` gives the actors' ends."""

    def __init__(self, spec: TableSpec, *, experiment: str, seed: int, clock: Clock) -> None:
        self.table_id = f"{experiment}.{spec.name}"
        self.spec = spec
        self.learner_version = 0
        self._clock = clock
        self._group = TableGroup(spec.model_copy(update={"chunk_rows": 1, "shards": 1}), seed=seed)
        self._table = self._group.primary
        self._layout = RunLayout(spec)
        self._rows: dict[tuple[int, int, int], bytes] = {}

    def writer(self, rule: ItemRule, *, environments: int, writer: int) -> MemoryWriter:
        """The end of one actor."""
        return MemoryWriter(self, rule, environments=environments, writer=writer)

    def sample(self, *, batch_items: int, deadline_s: float) -> Sample:
        """Items with their rows. In one thread nobody could make room meanwhile, so it never waits."""
        self._table.see_version(self.learner_version)
        if not self._table.can_sample(batch_items):
            reason = self._table.sample_waits_for(batch_items)
            raise DeadlineExceeded(f"table {self.table_id}: the learner cannot sample {batch_items} items: {reason}")
        chosen = self._table.sample(batch_items)
        rows = self._fetch(chosen)
        self._forget_garbage()
        return Sample.of(chosen, rows, newest_version=self._table.newest_version)

    def _fetch(self, chosen: SampledItems) -> FetchedRows:
        """Rows of items, as a client would get them."""
        runs = zip(chosen.writer.tolist(), chosen.env.tolist(), chosen.start.tolist(), chosen.length.tolist(), strict=True)
        stored = self._rows
        found = [stored[writer, env, row] for writer, env, start, length in runs for row in range(start, start + length)]
        batch = RunBatch(self._layout, length=chosen.length.astype(np.int64), lead=chosen.lead.astype(np.int64))
        batch.put(np.frombuffer(b"".join(found), self.spec.row_spec.dtype))
        return batch.finished(what=f"table {self.table_id}")

    def can_sample(self, *, batch_items: int) -> bool:
        return self._table.can_sample(batch_items)

    def update_priorities(self, keys: npt.NDArray[Any], priorities: npt.NDArray[Any]) -> None:
        self._group.update(UpdateEntry(keys=keys, priority=np.asarray(priorities, np.float32)))

    def info(self) -> dict[str, float]:
        """Sizes and limiter counters, named as a shard names them."""
        limiter = self._table.limiter
        return {
            "items": float(self._table.size),
            "inserted": float(limiter.inserted),
            "sampled": float(limiter.sampled),
            "rows": float(len(self._rows)),
        }

    # -- for writers

    def can_admit(self) -> bool:
        """Whether everything that was written is in."""
        if self._group.admitting is not None:
            self._group.admit()
            self._forget_garbage()
        return self._group.admitting is None

    def insert(self, entry: InsertEntry, rows: dict[tuple[int, int, int], bytes]) -> None:
        """Take a flush; what the limiter does not admit yet stays, and the table has no room until it is."""
        self._rows |= rows
        if self._group.begin(entry):
            self.can_admit()

    def _forget_garbage(self) -> None:
        garbage = self._group.take_garbage()
        for address in zip(garbage.writer.tolist(), garbage.env.tolist(), garbage.chunk_no.tolist(), strict=True):
            self._rows.pop(address, None)


class MemoryWriter:
    """Implements `rollstream.acting.TableSink`."""

    def __init__(self, table: MemoryTable, rule: ItemRule, *, environments: int, writer: int) -> None:
        self._table = table
        self._writer = writer
        self._open = OpenRows(table.spec.row_spec.dtype, environments=environments, rule=rule, chunk_rows=1)
        self._sequence = self._ordinal = 0

    def append(self, rollout: Rollout, *, deadline_s: float | None = None) -> WriteResult:
        """Write the rows and the items that became complete."""
        if not self.has_room():
            raise DeadlineExceeded(
                f"table {self._table.table_id} is full for its limiter, and in one thread nobody else could sample from it"
            )
        cut = self._open.cut(rollout.rows, rollout.offsets, closing=False)
        self._sequence += 1
        entry = entry_of(cut, writer=self._writer, sequence=self._sequence, first_ordinal=self._ordinal)
        chunks = zip(cut.chunk_env.tolist(), cut.chunk_no.tolist(), cut.payload, strict=True)
        stored = {(self._writer, env, number): row.tobytes() for env, number, row in chunks}
        self._table.insert(entry, stored)
        self._open.advance(cut)
        made = make_keys(0, self._writer, self._ordinal, cut.items.made)
        self._ordinal += cut.items.made
        return WriteResult(items=entry.items, rows=len(rollout.rows), waited_s=0.0, keys={self._table.spec.name: made})

    def flush(self, *, deadline_s: float) -> None:
        """Nothing is under way: what was appended is in, or waits for the limiter."""

    def has_room(self) -> bool:
        return self._table.can_admit()
