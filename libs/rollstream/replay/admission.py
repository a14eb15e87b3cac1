"""The insert entry that a table is admitting: which of its items, how far, and who makes room for them.

Items go in by pieces, as the limiter lets them. Who is removed is chosen for a whole block of pieces at once, before the first
goes, so that the choice does not depend on how the limiter cuts the block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from rollstream.replay.item_keys import Keys
from rollstream.replay.items import LOW, RECORD
from rollstream.replay.row_space import OpenEntry

if TYPE_CHECKING:
    from rollstream.replay.table import Table

__all__ = ["Admission"]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class Admission:
    """Admits items `chosen` [K] of an entry under `keys` [K] into `table`.

    Attributes:
        offset: how many of them are in.
    """

    def __init__(self, table: Table, opened: OpenEntry, chosen: Ints, keys: Keys) -> None:
        self.offset = 0
        self._table = table
        self._opened = opened
        self._block_end = 0
        self._victims = np.zeros(0, np.int64)
        self._victim_numbers = np.zeros(0, np.uint32)
        self._chosen, self._keys = chosen, keys
        self._priority = self._priorities()
        if opened.entry.key is not None and len(chosen):
            self._update_known()

    def advance(self, *, at_least: int) -> bool:
        """Insert what the limiter allows now, but at least `at_least`; returns whether all is in."""
        table, target = self._table, self.offset + at_least
        while self.offset < len(self._chosen):
            if self.offset == self._block_end:
                self._open_block()
            wanted = self._block_end - self.offset
            count = max(table.limiter.insertable(wanted, size=table.size), min(wanted, target - self.offset))
            if count == 0:
                return False
            self._insert(count)
            if self.offset == self._block_end and len(self._victims):
                self._spare_victims()
        return True

    def begin_anew(self) -> None:
        """Sizes or selectors have changed: who makes room is chosen again."""
        self._spare_victims()
        self._block_end = self.offset

    def _priorities(self) -> Floats:
        """NaN where the default applies: it is looked up when the item goes in."""
        given = self._opened.entry.priority
        if given is None:
            return np.full(len(self._chosen), np.nan)
        priority = given[self._chosen].astype(np.float64)
        bad = ~(np.isfinite(priority) & (priority >= 0.0))
        self._table.counters["priorities_refused"] += int((bad & ~np.isnan(priority)).sum())
        priority[bad] = np.nan
        return priority

    def _update_known(self) -> None:
        """Give known keys their new priority; what is left is new. Of a key that comes twice, the first is inserted."""
        table = self._table
        slots, known = table.items.find(self._keys)
        given = known & ~np.isnan(self._priority)
        if given.any():
            table.set_priorities(slots[given], self._priority[given])
        table.counters["items_updated"] += int(known.sum())
        fresh = np.flatnonzero(~known)
        _, first = np.unique(self._keys[fresh], return_index=True)
        fresh = fresh[np.sort(first)]
        self._chosen, self._keys, self._priority = self._chosen[fresh], self._keys[fresh], self._priority[fresh]

    def _open_block(self) -> None:
        table, limit = self._table, self._table.spec.items_per_shard
        block = min(len(self._chosen) - self.offset, limit)
        self._block_end = self.offset + block
        surplus = max(0, table.size + block - limit)
        if not surplus:
            return
        victims = table.remover.select_distinct(surplus, generator=table.removal_generator)
        self._victims, self._victim_numbers = victims, table.items.number[victims]
        table.items.condemned[victims] = True
        table.remover.remove(victims)

    def _spare_victims(self) -> None:
        """Put back into the remover those who were chosen to make room and need not."""
        spared = self._living_victims()
        self._victims, self._victim_numbers = np.zeros(0, np.int64), np.zeros(0, np.uint32)
        self._table.items.condemned[spared] = False
        self._table.enter(self._table.remover, spared)

    def _living_victims(self) -> Ints:
        items = self._table.items
        same = items.alive[self._victims] & (items.number[self._victims] == self._victim_numbers)
        living: Ints = self._victims if same.all() else self._victims[same]
        return living

    def _make_room(self, count: int) -> None:
        table, limit = self._table, self._table.spec.items_per_shard
        surplus = table.size + count - limit
        if surplus > 0 and len(self._victims):
            victims = self._living_victims()
            self._victims, self._victim_numbers = victims[surplus:], table.items.number[victims[surplus:]]
            table.remove(victims[:surplus], reason="evicted")
            surplus = table.size + count - limit
        if surplus > 0:
            table.remove(table.remover.select_distinct(surplus, generator=table.removal_generator), reason="evicted")
        if table.spec.max_bytes is not None:
            table.shrink_to_bytes()

    def _insert(self, count: int) -> None:
        self._make_room(count)
        table, opened, items = self._table, self._opened, self._table.items
        part = slice(self.offset, self.offset + count)
        first_number, entry = items.next_number, opened.entry
        # A slice where all items are chosen, as they mostly are: NumPy needs not gather then.
        chosen = part if len(self._chosen) == entry.items else self._chosen[part]
        highest = table.max_priority
        if entry.priority is None:
            priority = np.full(count, highest)
        else:
            priority = self._priority[part]
            missing = np.isnan(priority)
            if not missing.all():
                table.max_priority = max(highest, float(np.nanmax(priority)))
            priority = np.where(missing, highest, priority)
        run, places = opened.run[chosen], opened.first_place[chosen]
        version = entry.version[chosen].astype(np.int64)
        records = np.zeros(count, RECORD)
        records["key"] = self._keys[part]
        records["run"] = run
        records["offset"] = opened.offset[chosen]
        records["length"] = entry.length[chosen]
        records["first_place"] = places
        records["priority"] = priority
        records["version"] = version
        records["born"] = table.rows.row_clock & LOW
        if entry.lead is not None:
            records["lead"] = entry.lead[chosen]
        slots = items.allocate(records)
        table.rows.runs.hold(run)
        table.rows.references.hold(places, opened.chunks[chosen])
        numbers = np.arange(first_number, first_number + count)
        table.sampler.insert(slots, priority, numbers=numbers, versions=version)
        table.remover.insert(slots, priority, numbers=numbers, versions=version)
        table.count_inserted(slots)
        self.offset += count
