"""The items of one table as parallel arrays over slots: `ITEM_BYTES` an item, no object per item.

An item lies in a run (an episode of one environment, see `runs`), `offset` rows after its first. `number` counts insertions;
its low 32 bits tell the order of all items that are alive at the same time.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rollstream.replay.item_keys import Keys
from rollstream.replay.key_map import KeyMap

__all__ = ["ITEM_BYTES", "Items"]

Ints = npt.NDArray[np.int64]
LOW = 0xFFFFFFFF

COLUMNS: tuple[tuple[str, str], ...] = (
    ("key", "u8"),
    ("alive", "?"),
    ("condemned", "?"),
    ("gated", "?"),
    ("number", "u4"),
    ("run", "i4"),
    ("offset", "u4"),
    ("length", "i4"),
    ("lead", "u2"),
    ("priority", "f4"),
    ("version", "u4"),
    ("born", "u4"),
    ("times_sampled", "i4"),
    ("first_place", "i4"),
)
ITEM_BYTES = sum(np.dtype(dtype).itemsize for _, dtype in COLUMNS)


class Items:
    """Columns by slot, which slots are free, and slots by key.

    Attributes:
        condemned: chosen to make room for the block that is being admitted; not in the remover any more.
        gated: too old to be sampled; not in the sampler any more.
        born: low bits of the row clock when the item came.
        first_place: place of the item's first chunk.
    """

    key: npt.NDArray[np.uint64]
    alive: npt.NDArray[np.bool_]
    condemned: npt.NDArray[np.bool_]
    gated: npt.NDArray[np.bool_]
    number: npt.NDArray[np.uint32]
    run: npt.NDArray[np.int32]
    offset: npt.NDArray[np.uint32]
    length: npt.NDArray[np.int32]
    lead: npt.NDArray[np.uint16]
    priority: npt.NDArray[np.float32]
    version: npt.NDArray[np.uint32]
    born: npt.NDArray[np.uint32]
    times_sampled: npt.NDArray[np.int32]
    first_place: npt.NDArray[np.int32]

    def __init__(self, capacity: int) -> None:
        self.size = 0
        self.next_number = 0
        self.by_key = KeyMap()
        self._free = np.zeros(0, np.int32)
        self._free_head = 0
        self._free_count = 0
        self.high = 0
        for name, dtype in COLUMNS:
            setattr(self, name, np.zeros(0, dtype))
        self.grow(capacity)

    @property
    def capacity(self) -> int:
        return len(self.alive)

    def grow(self, capacity: int) -> None:
        """Make room for `capacity` items; memory is touched only as slots are used."""
        free = self.free_slots()
        for name, _ in COLUMNS:
            old = getattr(self, name)
            new = np.zeros(capacity, old.dtype)
            new[: len(old)] = old
            setattr(self, name, new)
        self._free = np.zeros(capacity, np.int32)
        self._free[: len(free)] = free
        self._free_head = 0

    def allocate(self, keys: Keys) -> Ints:
        """Free slots for new items with `keys` [K], numbered in order.

        Unused slots first, then those that were freed first: so which item gets which slot depends on the order of inserts and
        removals alone, not on how many went in at once, and neither do the draws of selectors.
        """
        count = len(keys)
        fresh = min(count, self.capacity - self.high)
        slots = np.arange(self.high, self.high + fresh)
        self.high += fresh
        if fresh < count:
            reused = count - fresh
            slots = np.concatenate([slots, self._free[self._ring(self._free_head, reused)].astype(np.int64)])
            self._free_head = (self._free_head + reused) % self.capacity
            self._free_count -= reused
        self.alive[slots] = True
        self.key[slots] = keys
        self.number[slots] = np.arange(self.next_number, self.next_number + count).astype(np.uint32)
        self.by_key.insert(keys, slots)
        self.next_number += count
        self.size += count
        return slots

    def free(self, slots: Ints) -> None:
        """Let `slots` [K] be used again; their columns stay readable until then."""
        self.by_key.remove(self.key[slots])
        self.alive[slots] = False
        self.condemned[slots] = False
        self.gated[slots] = False
        self._free[self._ring(self._free_head + self._free_count, len(slots))] = slots
        self._free_count += len(slots)
        self.size -= len(slots)

    def free_slots(self) -> npt.NDArray[np.int32]:
        """Slots that were used and are free, the one used next first."""
        return self._free[self._ring(self._free_head, self._free_count)]

    def _ring(self, start: int, count: int) -> slice | Ints:
        start %= max(1, self.capacity)
        if start + count <= self.capacity:
            return slice(start, start + count)
        return np.arange(start, start + count) % self.capacity

    def occupy(self, slots: Ints, keys: Keys, *, free: Ints | None) -> None:
        """Fill an empty store with known slots and keys (restore); `free` as `free_slots` gave it, if it did."""
        self.alive[slots] = True
        self.key[slots] = keys
        self.by_key.insert(keys, slots)
        self.size = len(slots)
        highest = max((int(part.max()) for part in (slots, free) if part is not None and len(part)), default=-1)
        self.high = highest + 1
        holes = np.flatnonzero(~self.alive[: self.high]) if free is None else free
        self._free[: len(holes)] = holes
        self._free_head, self._free_count = 0, len(holes)

    def live(self) -> Ints:
        """Slots of all items, oldest first."""
        slots = np.flatnonzero(self.alive[: self.high])
        return slots[np.argsort(self.age(slots), kind="stable")[::-1]]

    def age(self, slots: Ints) -> Ints:
        """Items that were inserted since each of `slots` [K], itself included."""
        age = np.uint32(self.next_number & LOW) - self.number[slots]
        return age.astype(np.int64)

    def numbers(self, slots: Ints) -> Ints:
        """Whole insertion numbers of `slots` [K]."""
        return self.next_number - self.age(slots)

    def find(self, keys: Keys) -> tuple[Ints, npt.NDArray[np.bool_]]:
        """Slots [K] of `keys` [K] and whether the item is there; a slot without its item must not be used."""
        return self.by_key.find(keys)
