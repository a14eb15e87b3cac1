"""The index of one table on one shard: which items it holds, and who is admitted, drawn and removed.

    offer(opened entry) ─▶ admit() ... admit() ─▶ (all in)     one insert entry at a time, as far as the limiter lets it
    update, delete, sample, get                                at any time in between

One thread owns a table; there is no lock and no loop per item. Everything depends on the log, the seed and the calls alone, so
the same log gives the same table. Rows belong to a `RowSpace`, which several tables may share (`TableGroup`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from rollstream.errors import TableError
from rollstream.replay.admission import Admission
from rollstream.replay.chunks import ChunkAddresses
from rollstream.replay.item_keys import Keys
from rollstream.replay.items import LOW, Items
from rollstream.replay.limiter import RateLimiter
from rollstream.replay.row_space import OpenEntry, RowSpace
from rollstream.replay.samples import SampledItems
from rollstream.replay.selectors import Selection, Selector, make_selector
from rollstream.replay.spec import TableSpec
from rollstream.replay.use_count import occurrence
from rollstream.seeding import child_generator

__all__ = ["Table"]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
ROUNDS_FOR_BYTES = 8
ONE = np.int32(1)


class Table:
    """One shard of one table."""

    def __init__(self, spec: TableSpec, *, rows: RowSpace | None = None, shard: int = 0, seed: int = 0) -> None:
        self.spec = spec
        self.shard = shard
        self.rows = RowSpace(chunk_rows=spec.chunk_rows) if rows is None else rows
        self.limiter = RateLimiter(spec.limiter)
        self.items = Items(spec.items_per_shard)
        self.max_priority = 1.0
        self.newest_version = 0
        self.counters: Counter[str] = Counter()
        self.sampling_generator = child_generator(seed, "replay", spec.name, shard, "sampler")
        self.removal_generator = child_generator(seed, "replay", spec.name, shard, "remover")
        self.sampler = make_selector(spec.sampler, capacity=spec.items_per_shard, shards=spec.shards)
        self.remover = make_selector(spec.remover, capacity=spec.items_per_shard, shards=spec.shards)
        self._admission: Admission | None = None
        self._uses_left = 0
        self._left = np.zeros(spec.items_per_shard if spec.max_times_sampled else 0, np.int32)

    @property
    def size(self) -> int:
        return self.items.size

    @property
    def admitting(self) -> bool:
        """Whether the entry that was offered is not wholly admitted yet."""
        return self._admission is not None

    @property
    def admitted(self) -> int:
        """How many items of the entry are in, -1 when none is being admitted."""
        return self._admission.offset if self._admission else -1

    # --- inserts ---------------------------------------------------------------------------------------------------------

    def offer(self, opened: OpenEntry, chosen: Ints, keys: Keys) -> None:
        """Take up the items `chosen` [K] of an entry, which get `keys` [K]. An item that is there under its key is updated."""
        if self._admission is not None:
            raise TableError("offer: the previous entry is not wholly admitted; call admit first")
        if len(chosen):
            self.see_version(int(opened.entry.version[chosen].max()))
        self._admission = Admission(self, opened, chosen, keys)

    def admit(self, *, at_least: int = 0) -> int:
        """Insert as many items of the entry as the limiter admits now, but at least `at_least` (recovery); returns how many."""
        if self._admission is None:
            return 0
        admission, before = self._admission, self._admission.offset
        done = admission.advance(at_least=at_least)
        inserted: int = admission.offset - before
        if done:
            self._admission = None
        return inserted

    def count_inserted(self, slots: Ints) -> None:
        """New items are in their places: let them be sampled, as far as they may."""
        count = len(slots)
        self.limiter.inserted += count
        limit = self.spec.max_times_sampled
        if limit:
            self._left[slots] = limit
            self._uses_left += count * limit
        if self.spec.max_lag_versions:
            self._gate(slots)

    def shrink_to_bytes(self) -> None:
        """Remove items until their rows fit `max_bytes`, or removing frees nothing (rows that writers and other tables hold)."""
        limit = self.spec.bytes_per_shard or 0
        for _ in range(ROUNDS_FOR_BYTES):
            held = self.held_bytes()
            removable = self.size - int(self.items.condemned.sum())
            if held <= limit or removable <= 0:
                return
            count = min(removable, max(1, (held - limit) * self.size // held))
            self.remove(self.remover.select_distinct(count, generator=self.removal_generator), reason="evicted")
            if self.held_bytes() == held:
                return

    def enter(self, selector: Selector, slots: Ints) -> None:
        """Insert slots that are known already into a selector."""
        items = self.items
        selector.insert(
            slots,
            items.priority[slots].astype(np.float64),
            numbers=items.numbers(slots),
            versions=items.version[slots].astype(np.int64),
        )

    # --- changes ---------------------------------------------------------------------------------------------------------

    def update(self, keys: Keys, priority: npt.NDArray[np.float32]) -> npt.NDArray[np.bool_]:
        """Set priorities [K] of `keys` [K]; of a repeated key the last wins. Bad priorities are refused and counted.

        Returns:
            Which keys [K] are those of items of this table.
        """
        good = np.isfinite(priority) & (priority >= 0.0)
        slots, known = self.items.find(keys)
        self.counters["priorities_refused"] += int((known & ~good).sum())
        which = known & good
        if which.any():
            self.set_priorities(slots[which], priority[which].astype(np.float64))
        return known

    def set_priorities(self, slots: Ints, priority: Floats) -> None:
        """Give the items at `slots` [K] new priorities [K], good ones; of a repeated slot the last counts."""
        if len(slots) > 1:
            slots, last = np.unique(slots[::-1], return_index=True)
            priority = priority[::-1][last]
        self.items.priority[slots] = priority
        sampled, removable = ~self.items.gated[slots], ~self.items.condemned[slots]
        self.sampler.update(slots[sampled], priority[sampled])
        self.remover.update(slots[removable], priority[removable])
        self.max_priority = max(self.max_priority, float(priority.max()))
        self.counters["priorities_updated"] += len(slots)

    def delete(self, keys: Keys, *, missing: bool = False) -> npt.NDArray[np.bool_]:
        """Remove items by key; returns which keys [K] are those of items of this table."""
        slots, known = self.items.find(keys)
        self.remove(np.unique(slots[known]), reason="missing" if missing else "deleted")
        return known

    def reset(self) -> None:
        """Empty the table and begin its limiter and its highest priority anew; what is being admitted to it is dropped."""
        self._admission = None
        self.remove_all()
        self.limiter.inserted = self.limiter.sampled = 0
        self.max_priority = 1.0
        self.counters["resets"] += 1

    def remove_all(self) -> None:
        """Remove every item: reset, or making place for a restored state."""
        self.remove(self.items.live(), reason="reset")

    def remove(self, slots: Ints, *, reason: str) -> None:
        """Let the items at `slots` [K], all different, leave; `reason` names the counter."""
        if not len(slots):
            return
        items = self.items.records.take(slots)
        chunk_rows, runs, run, length = self.rows.chunk_rows, self.rows.runs, items["run"], items["length"]
        first = runs.start.take(run) + items["offset"]
        first_chunk = first if chunk_rows == 1 else first // chunk_rows
        self.rows.references.release(
            items["first_place"].astype(np.int64),
            length if chunk_rows == 1 else (first + length - 1) // chunk_rows - first_chunk + 1,
            lambda which: ChunkAddresses(
                writer=runs.writer[run[which]], env=runs.env[run[which]], chunk_no=first_chunk[which].astype(np.uint64)
            ),
        )
        runs.release(run)
        gated = self.items.gated[slots]
        open_to_samplers = slots if not gated.any() else slots[~gated]
        self.sampler.remove(open_to_samplers)
        if self.spec.max_times_sampled:
            self._uses_left -= int(self._left[open_to_samplers].sum())
        condemned = self.items.condemned[slots]
        self.remover.remove(slots if not condemned.any() else slots[~condemned])
        self.items.free(slots, np.ascontiguousarray(items["key"]))
        self.counters[f"items_{reason}"] += len(slots)

    def see_version(self, version: int) -> None:
        """The newest weights are at least of this version: items that lag too far behind cannot be sampled any more."""
        if version <= self.newest_version:
            return
        self.newest_version = version
        self.sampler.advance(version)
        self.remover.advance(version)
        if self.spec.max_lag_versions and version > self.spec.max_lag_versions:
            items = self.items
            self._gate(np.flatnonzero(items.alive[: items.high] & ~items.gated[: items.high]))

    def _gate(self, slots: Ints) -> None:
        old = slots[self.items.version[slots].astype(np.int64) < self.newest_version - self.spec.max_lag_versions]
        if not len(old):
            return
        self.items.gated[old] = True
        self.sampler.remove(old)
        self.counters["items_gated"] += len(old)
        if self.spec.max_times_sampled:
            self._uses_left -= int(self._left[old].sum())

    # --- samples ---------------------------------------------------------------------------------------------------------

    def can_sample(self, count: int) -> bool:
        if self.sampler.sampleable == 0 or not self.limiter.can_sample(count, size=self.size):
            return False
        return not self.spec.max_times_sampled or self._uses_left >= count

    def sample_waits_for(self, count: int) -> str:
        """Why `count` items cannot be sampled now, for people; empty when they can."""
        reason = self.limiter.sample_waits_for(count, size=self.size)
        if not reason and not self.can_sample(count):
            if self.size and self.sampler.sampleable == 0:
                return (
                    f"all {self.size} items lag more than max_lag_versions {self.spec.max_lag_versions} behind version "
                    f"{self.newest_version}: writers must insert newer ones"
                )
            reason = f"waiting for {count} uses of items, have {self._uses_left}: writers must insert"
        return reason

    def sample(self, count: int, *, counted: bool = True, batches: Sequence[int] = ()) -> SampledItems:
        """Draw `count` items. Ask `can_sample` first.

        Args:
            batches: how many items each batch has, where `count` is several; only stratified draws make a difference of it.
            counted: whether the limiter counts them now; otherwise tell it when they are used (`limiter.consume`).
        """
        if not self.can_sample(count):
            raise TableError(f"sample of {count} items is not possible now: {self.sample_waits_for(count)}")
        table_items = self.sampler.sampleable
        selection = self._draw_each(batches) if len(batches) > 1 and self._stratified else self._draw(count)
        if counted:
            self.limiter.sampled += count
        self.counters["samples"] += count
        return self.describe_items(selection.slots, selection.probability, table_items=table_items)

    def get(self, keys: Keys) -> tuple[SampledItems, npt.NDArray[np.bool_]]:
        """The items of `keys` [K] that are there, with the probability of one draw now, and which keys [K] are known."""
        slots, known = self.items.find(keys)
        slots = slots[known]
        probability = np.zeros(len(slots))
        drawable = ~self.items.gated[slots]
        if drawable.any():
            probability[drawable] = self.sampler.probability(slots[drawable])
        return self.describe_items(slots, probability, table_items=self.sampler.sampleable), known

    def describe_items(self, slots: Ints, probability: Floats, *, table_items: int) -> SampledItems:
        """The items at `slots` [K], as they are sent."""
        runs, items = self.rows.runs, self.items.records.take(slots)
        run = items["run"]
        return SampledItems(
            keys=items["key"],
            writer=runs.writer.take(run),
            env=runs.env.take(run),
            start=(runs.start.take(run) + items["offset"]).view(np.uint64),
            length=items["length"].view(np.uint32),
            lead=items["lead"],
            probability=probability,
            priority=items["priority"],
            times_sampled=items["times_sampled"],
            version=items["version"],
            age_rows=np.uint32(self.rows.row_clock & LOW) - items["born"],
            table_items=table_items,
        )

    @property
    def _stratified(self) -> bool:
        return bool(getattr(self.spec.sampler, "stratified", False))

    def _draw_each(self, batches: Sequence[int]) -> Selection:
        parts = [self._draw(int(count)) for count in batches]
        return Selection(
            slots=np.concatenate([part.slots for part in parts]),
            probability=np.concatenate([part.probability for part in parts]),
        )

    def _draw(self, count: int) -> Selection:
        limit = self.spec.max_times_sampled
        if not limit:
            selection = self.sampler.select(count, generator=self.sampling_generator, uses_left=None)
            self._count_uses(selection.slots)
            return selection
        parts: list[Selection] = []
        missing = count
        while missing:
            # A draw beyond an item's last use is drawn again from what remains: as if one item after another had been drawn.
            # The columns of a removed item stay readable until the next insert.
            drawn = self.sampler.select(missing, generator=self.sampling_generator, uses_left=self._left)
            usable = occurrence(drawn.slots) < self._left[drawn.slots]
            part = Selection(slots=drawn.slots[usable], probability=drawn.probability[usable])
            self._count_uses(part.slots)
            np.subtract.at(self._left, part.slots, ONE)
            self._uses_left -= len(part.slots)
            missing -= len(part.slots)
            parts.append(part)
            touched = np.unique(part.slots)
            self.remove(touched[self._left[touched] <= 0], reason="exhausted")
        return Selection(
            slots=np.concatenate([part.slots for part in parts]),
            probability=np.concatenate([part.probability for part in parts]),
        )

    def _count_uses(self, slots: Ints) -> None:
        times = self.items.times_sampled
        new = slots[times[slots] == 0]
        if len(new):
            self.counters["items_ever_sampled"] += len(np.unique(new))
        np.add.at(times, slots, ONE)

    # --- the whole -------------------------------------------------------------------------------------------------------

    def start_rows(self, slots: Ints) -> Ints:
        """First row of each item, counted from the first ever of its environment. Shapes: [K] -> [K]."""
        start: Ints = self.rows.runs.start[self.items.run[slots]] + self.items.offset[slots]
        return start

    def held_bytes(self) -> int:
        """Redis memory of the rows that are held, by whatever table of the row space."""
        return self.rows.held_bytes(self.spec.chunk_memory_bytes(""), value_bytes=self.spec.chunk_bytes)

    def apply(self, spec: TableSpec) -> None:
        """Change what may change on a living table: selectors, limiter, sizes. The rows may not (make a new table)."""
        self.spec.row_spec.require_equal(spec.row_spec, ours="the table", theirs="the change")
        for name in ("chunk_rows", "shards", "rows_of"):
            before, wanted = getattr(self.spec, name), getattr(spec, name)
            if before != wanted:
                raise TableError(f"{name} cannot change on a living table: {before!r} to {wanted!r}; make a new one")
        self.spec = spec
        self.limiter.rule = spec.limiter
        if self._admission is not None:
            self._admission.begin_anew()
        self.fit()
        if spec.items_per_shard > self.items.capacity:
            self.items.grow(spec.items_per_shard)
        self.rebuild_selectors()

    def fit(self) -> None:
        """Remove what exceeds the table's limits, by the remover's rule."""
        surplus = self.size - self.spec.items_per_shard
        if surplus > 0:
            self.remove(self.remover.select_distinct(surplus, generator=self.removal_generator), reason="evicted")
        if self.spec.max_bytes is not None:
            self.shrink_to_bytes()

    def selector_orders(self) -> dict[str, Ints]:
        """What `rebuild_selectors` needs besides the items to make equal selectors."""
        orders = {"sampler_order": self.sampler.order(), "remover_order": self.remover.order()}
        return {name: order for name, order in orders.items() if order is not None}

    def rebuild_selectors(
        self, orders: Mapping[str, Ints] | None = None, *, facts: Mapping[str, Mapping[str, float]] | None = None
    ) -> None:
        """Make both selectors anew from the items, oldest first unless an order is given, with what they say of themselves."""
        spec, items = self.spec, self.items
        live = items.live()
        self.sampler = make_selector(spec.sampler, capacity=items.capacity, shards=spec.shards)
        self.remover = make_selector(spec.remover, capacity=items.capacity, shards=spec.shards)
        items.gated[live] = False
        for name, selector in (("sampler_order", self.sampler), ("remover_order", self.remover)):
            order = (orders or {}).get(name, live)
            self.enter(selector, order if len(order) == len(live) else live)
            selector.advance(self.newest_version)
            selector.resume((facts or {}).get(name.partition("_")[0], {}))
        self._left = np.zeros(items.capacity if spec.max_times_sampled else 0, np.int32)
        if spec.max_times_sampled:
            self._left[live] = spec.max_times_sampled - items.times_sampled[live]
            self._uses_left = int(self._left[live].sum())
            self.remove(live[self._left[live] <= 0], reason="exhausted")
        if spec.max_lag_versions:
            self._gate(items.live())
