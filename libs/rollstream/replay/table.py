"""The index of one table shard: what the log says, as arrays. Decides what is admitted, sampled and removed.

    begin(entry) ─▶ admit() ... admit() ─▶ (closed)      one insert entry at a time, as far as the limiter lets it
    update, delete, sample                               at any time in between
    take_garbage()                                       chunks to unlink

One thread owns a table; there is no lock and no loop per item. Everything depends on the log, the seed and the calls alone, so
the same log gives the same table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rollstream.errors import TableError
from rollstream.replay.chunks import ChunkAddresses, ChunkReferences
from rollstream.replay.items import Items
from rollstream.replay.limiter import RateLimiter
from rollstream.replay.log import DeleteEntry, InsertEntry, UpdateEntry
from rollstream.replay.samples import SampledItems
from rollstream.replay.selectors import Selection, make_selector
from rollstream.replay.spec import TableSpec
from rollstream.replay.streams import Window, WriterStreams
from rollstream.seeding import child_generator

__all__ = ["Table"]

Ints = npt.NDArray[np.int64]


@dataclass(slots=True, kw_only=True)
class _Admission:
    """The insert entry that is being admitted: how far, over which chunks, and who makes room for it."""

    entry: InsertEntry
    streams: WriterStreams
    window: Window
    chosen: Ints
    priority: npt.NDArray[np.float64]
    offset: int = 0
    block_end: int = 0
    victims: Ints
    victim_numbers: Ints


class Table:
    """One shard of one table."""

    def __init__(self, spec: TableSpec, *, shard: int = 0, seed: int = 0) -> None:
        self.spec = spec
        self.shard = shard
        self.limiter = RateLimiter(spec.limiter)
        self.items = Items(spec.max_items, shard=shard)
        self.references = ChunkReferences()
        self.streams: dict[int, WriterStreams] = {}
        self.max_priority = 1.0
        self.counters: Counter[str] = Counter()
        self.sampling_generator = child_generator(seed, "replay", spec.name, shard, "sampler")
        self.removal_generator = child_generator(seed, "replay", spec.name, shard, "remover")
        self._sampler = make_selector(spec.sampler, capacity=spec.max_items)
        self._remover = make_selector(spec.remover, capacity=spec.max_items)
        self._admission: _Admission | None = None
        self._uses_left = 0

    @property
    def size(self) -> int:
        return self.items.size

    @property
    def admitting(self) -> InsertEntry | None:
        """The entry that is not wholly admitted yet."""
        return self._admission.entry if self._admission else None

    @property
    def admitted(self) -> int:
        """How many items of the entry in `admitting` are in."""
        return self._admission.offset if self._admission else 0

    # --- inserts ---------------------------------------------------------------------------------------------------------

    def begin(self, entry: InsertEntry) -> bool:
        """Take up the next insert entry; False when it is a repetition or cannot be (counted), and there is nothing to admit."""
        if self._admission is not None:
            raise TableError("begin: the previous entry is not wholly admitted; call admit first")
        streams = self.streams.get(entry.writer) or WriterStreams.first_seen(entry)
        if entry.sequence <= streams.sequence:
            self.counters["entries_repeated"] += 1
            return False
        if streams.problem(entry):
            self.counters["entries_refused"] += 1
            return False
        self.streams[entry.writer] = streams
        usable = streams.usable(entry)
        chosen = np.flatnonzero(usable)
        self.counters["items_without_rows"] += entry.items - len(chosen)
        window = streams.open_window(entry, self.references, chunk_rows=self.spec.chunk_rows)
        nothing = np.zeros(0, np.int64)
        self._admission = _Admission(
            entry=entry,
            streams=streams,
            window=window,
            chosen=chosen,
            priority=self._entry_priorities(entry, chosen),
            victims=nothing,
            victim_numbers=nothing,
        )
        return True

    def admit(self, *, at_least: int = 0) -> int:
        """Insert as many items of the entry as the limiter admits now, but at least `at_least` (recovery); returns how many."""
        admission = self._admission
        if admission is None:
            return 0
        inserted = 0
        while admission.offset < len(admission.chosen):
            if admission.offset == admission.block_end:
                self._open_block(admission)
            wanted = admission.block_end - admission.offset
            count = max(self.limiter.insertable(wanted, size=self.size), min(wanted, at_least - inserted))
            if count == 0:
                return inserted
            self._insert(admission, count)
            inserted += count
            if admission.offset == admission.block_end and len(admission.victims):
                self._spare_victims(admission)
        admission.streams.close_window(
            admission.entry,
            admission.window,
            self.references,
            writer=admission.entry.writer,
            chunk_rows=self.spec.chunk_rows,
        )
        self._admission = None
        return inserted

    def _entry_priorities(self, entry: InsertEntry, chosen: Ints) -> npt.NDArray[np.float64]:
        """NaN where the default applies: it is looked up when the item goes in."""
        if entry.default_priority:
            return np.full(len(chosen), np.nan)
        priority = entry.priority[chosen].astype(np.float64)
        bad = ~(np.isfinite(priority) & (priority >= 0.0))
        self.counters["priorities_refused"] += int(bad.sum())
        priority[bad] = np.nan
        return priority

    def _open_block(self, admission: _Admission) -> None:
        """Choose, for up to `max_items` items at once, who makes room; all of them before the first goes, so that the choice does
        not depend on how the limiter cuts the block into pieces."""
        block = min(len(admission.chosen) - admission.offset, self.spec.max_items)
        admission.block_end = admission.offset + block
        surplus = max(0, self.size + block - self.spec.max_items)
        victims = self._remover.select_distinct(surplus, generator=self.removal_generator) if surplus else np.zeros(0, np.int64)
        admission.victims, admission.victim_numbers = victims, self.items.number[victims]
        self.items.condemned[victims] = True
        self._remover.remove(victims)

    def _spare_victims(self, admission: _Admission) -> None:
        """Put back into the remover those who were chosen to make room and need not."""
        spared = self._living_victims(admission)
        nothing = np.zeros(0, np.int64)
        admission.victims, admission.victim_numbers = nothing, nothing
        self.items.condemned[spared] = False
        self._remover.insert(spared, self.items.priority[spared].astype(np.float64))

    def _living_victims(self, admission: _Admission) -> Ints:
        same = self.items.number[admission.victims] == admission.victim_numbers
        living: Ints = admission.victims[self.items.alive[admission.victims] & same]
        return living

    def _make_room(self, admission: _Admission, count: int) -> None:
        surplus = self.size + count - self.spec.max_items
        if surplus <= 0:
            return
        victims = self._living_victims(admission)
        admission.victims, admission.victim_numbers = victims[surplus:], self.items.number[victims[surplus:]]
        self._remove(victims[:surplus], reason="evicted")
        missing = self.size + count - self.spec.max_items
        if missing > 0:
            self._remove(self._remover.select_distinct(missing, generator=self.removal_generator), reason="evicted")

    def _insert(self, admission: _Admission, count: int) -> None:
        self._make_room(admission, count)
        items, entry, window, chunk_rows = self.items, admission.entry, admission.window, self.spec.chunk_rows
        part = slice(admission.offset, admission.offset + count)
        chosen = admission.chosen[part]
        priority = admission.priority[part]
        given = priority[~np.isnan(priority)]
        if len(given) < count:
            priority = np.where(np.isnan(priority), self.max_priority, priority)
        slots = items.allocate(count)
        env, start, length = entry.env[chosen], entry.start[chosen].astype(np.int64), entry.length[chosen]
        items.writer[slots] = entry.writer
        items.env[slots] = env
        items.start[slots] = start
        items.length[slots] = length
        items.priority[slots] = priority
        items.times_sampled[slots] = 0
        first_chunk = start // chunk_rows
        places = window.places[window.base[env] + first_chunk - window.low[env]]
        items.first_place[slots] = places
        self.references.hold(places, (start + length - 1) // chunk_rows - first_chunk + 1)
        self._sampler.insert(slots, priority)
        self._remover.insert(slots, priority)
        if len(given):
            self.max_priority = max(self.max_priority, float(given.max()))
        self.limiter.inserted += count
        self._uses_left += count * self.spec.max_times_sampled
        admission.offset += count

    # --- changes ---------------------------------------------------------------------------------------------------------

    def update(self, entry: UpdateEntry) -> None:
        """Set priorities; of a repeated key the last wins. Unknown keys are ignored, bad priorities refused, both counted."""
        self.counters["priorities_refused"] += entry.refused
        good = np.isfinite(entry.priority) & (entry.priority >= 0.0)
        self.counters["priorities_refused"] += len(good) - int(good.sum())
        slots, known = self.items.find(entry.keys[good])
        self.counters["keys_stale"] += len(known) - int(known.sum())
        slots, priority = slots[known], entry.priority[good][known].astype(np.float64)
        if not len(slots):
            return
        slots, last = np.unique(slots[::-1], return_index=True)
        priority = priority[::-1][last]
        self.items.priority[slots] = priority
        self._sampler.update(slots, priority)
        removable = ~self.items.condemned[slots]
        self._remover.update(slots[removable], priority[removable])
        self.max_priority = max(self.max_priority, float(priority.max()))
        self.counters["priorities_updated"] += len(slots)

    def delete(self, entry: DeleteEntry) -> None:
        """Remove items by key; unknown keys are ignored and counted."""
        slots, known = self.items.find(entry.keys)
        self.counters["keys_stale"] += len(known) - int(known.sum())
        self._remove(np.unique(slots[known]), reason="missing" if entry.missing else "deleted")

    def _remove(self, slots: Ints, *, reason: str) -> None:
        if not len(slots):
            return
        items, chunk_rows = self.items, self.spec.chunk_rows
        self.references.release(
            items.first_place[slots].astype(np.int64),
            items.chunks(slots, chunk_rows=chunk_rows),
            items.addresses(slots, chunk_rows=chunk_rows),
        )
        self._sampler.remove(slots)
        self._remover.remove(slots[~items.condemned[slots]])
        items.free(slots)
        self._uses_left -= int((self.spec.max_times_sampled - items.times_sampled[slots]).sum())
        self.counters[f"items_{reason}"] += len(slots)

    def remove_all(self) -> None:
        """Remove every item: reset, or making place for a restored state."""
        self._remove(self.items.live(), reason="reset")

    def take_garbage(self) -> ChunkAddresses:
        """Chunks that no item and no writer needs any more, since the last call."""
        return self.references.take_garbage()

    def forget_writer(self, writer: int) -> None:
        """A writer that is gone for good: its pinned rows are needed by items only."""
        if self._admission is not None and self._admission.entry.writer == writer:
            return
        streams = self.streams.pop(writer, None)
        if streams is None:
            return
        farewell = InsertEntry(
            writer=writer,
            sequence=streams.sequence + 1,
            default_priority=True,
            keep=streams.end.astype(np.uint64),
            end=streams.end.astype(np.uint64),
            start=np.zeros(0, np.uint64),
            env=np.zeros(0, np.uint32),
            length=np.zeros(0, np.uint32),
            priority=np.zeros(0, np.float32),
        )
        window = streams.open_window(farewell, self.references, chunk_rows=self.spec.chunk_rows)
        streams.close_window(farewell, window, self.references, writer=writer, chunk_rows=self.spec.chunk_rows)

    # --- samples ---------------------------------------------------------------------------------------------------------

    def can_sample(self, count: int) -> bool:
        if self.size == 0 or not self.limiter.can_sample(count, size=self.size):
            return False
        return not self.spec.max_times_sampled or self._uses_left >= count

    def sample_waits_for(self, count: int) -> str:
        """Why `count` items cannot be sampled now, for people; empty when they can."""
        reason = self.limiter.sample_waits_for(count, size=self.size)
        if not reason and not self.can_sample(count):
            reason = f"waiting for {count} uses of items, have {self._uses_left}: writers must insert"
        return reason

    def sample(self, count: int) -> SampledItems:
        """Draw `count` items. Ask `can_sample` first."""
        if not self.can_sample(count):
            raise TableError(f"sample of {count} items is not possible now: {self.sample_waits_for(count)}")
        table_items = self._sampler.sampleable
        selection = self._draw(count)
        self.limiter.sampled += count
        items, slots = self.items, selection.slots
        return SampledItems(
            keys=items.keys(slots),
            writer=items.writer[slots],
            env=items.env[slots],
            start=items.start[slots].astype(np.uint64),
            length=items.length[slots].astype(np.uint32),
            probability=selection.probability,
            priority=items.priority[slots],
            times_sampled=items.times_sampled[slots],
            table_items=table_items,
        )

    def _draw(self, count: int) -> Selection:
        limit = self.spec.max_times_sampled
        times = self.items.times_sampled
        if not limit:
            selection = self._sampler.select(count, generator=self.sampling_generator, uses_left=None)
            np.add.at(times, selection.slots, np.int32(1))
            return selection
        parts: list[Selection] = []
        missing = count
        while missing:
            # A draw beyond an item's last use is drawn again from what remains: as if one item after another had been drawn.
            # The columns of a removed item stay readable until the next insert.
            left = limit - times.astype(np.int64)
            drawn = self._sampler.select(missing, generator=self.sampling_generator, uses_left=left)
            usable = _occurrence(drawn.slots) < left[drawn.slots]
            part = Selection(slots=drawn.slots[usable], probability=drawn.probability[usable])
            np.add.at(times, part.slots, np.int32(1))
            self._uses_left -= len(part.slots)
            missing -= len(part.slots)
            parts.append(part)
            touched = np.unique(part.slots)
            self._remove(touched[times[touched] >= limit], reason="exhausted")
        return Selection(
            slots=np.concatenate([part.slots for part in parts]),
            probability=np.concatenate([part.probability for part in parts]),
        )

    # --- live change -----------------------------------------------------------------------------------------------------

    def apply(self, spec: TableSpec) -> None:
        """Change what may change on a living table: selectors, limiter, sizes. The rows may not (make a new table)."""
        self.spec.row_spec.require_equal(spec.row_spec, ours="the table", theirs="the change")
        if spec.chunk_rows != self.spec.chunk_rows:
            raise TableError(
                f"chunk_rows cannot change on a living table: {self.spec.chunk_rows} to {spec.chunk_rows}; make a new one"
            )
        self.spec = spec
        self.limiter.rule = spec.limiter
        if self._admission is not None:
            self._spare_victims(self._admission)
        surplus = self.size - spec.max_items
        if surplus > 0:
            self._remove(self._remover.select_distinct(surplus, generator=self.removal_generator), reason="evicted")
        if spec.max_items > self.items.capacity:
            self.items.grow(spec.max_items)
        self.rebuild_selectors()

    def selector_orders(self) -> dict[str, Ints]:
        """What `rebuild_selectors` needs besides the items to make equal selectors."""
        orders = {"sampler_order": self._sampler.order(), "remover_order": self._remover.order()}
        return {name: order for name, order in orders.items() if order is not None}

    def rebuild_selectors(self, orders: Mapping[str, Ints] | None = None) -> None:
        """Make both selectors anew from the items, oldest first unless an order is given."""
        spec, items = self.spec, self.items
        live = items.live()
        self._sampler = make_selector(spec.sampler, capacity=items.capacity)
        self._remover = make_selector(spec.remover, capacity=items.capacity)
        for name, selector in (("sampler_order", self._sampler), ("remover_order", self._remover)):
            order = (orders or {}).get(name, live)
            order = order if len(order) == len(live) else live
            selector.insert(order, items.priority[order].astype(np.float64))
        if spec.max_times_sampled:
            left = spec.max_times_sampled - items.times_sampled[live].astype(np.int64)
            self._uses_left = int(left.sum())
            self._remove(live[left <= 0], reason="exhausted")


def _occurrence(slots: Ints) -> Ints:
    """How often the same value stands before, for each value."""
    order = np.argsort(slots, kind="stable")
    ordered = slots[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    rank = np.arange(len(slots)) - np.repeat(starts, np.diff(np.r_[starts, len(slots)]))
    occurrence = np.empty(len(slots), np.int64)
    occurrence[order] = rank
    return occurrence
