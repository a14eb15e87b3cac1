"""The items of one table shard as parallel arrays over slots: 45 bytes an item, no object per item.

A key tells its slot and, against reuse, the low bits of the item's number, a count of insertions that follows from the log alone:

    key u8 = shard (8 bits) | number (30 bits) | slot (26 bits)

so a lookup is arithmetic, a key of a removed item is recognized as stale, and a restarted shard gives out the same keys.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rollstream.replay.chunks import ChunkAddresses

__all__ = ["Items"]

Ints = npt.NDArray[np.int64]
Keys = npt.NDArray[np.uint64]

SLOT_BITS = 26
NUMBER_BITS = 30
SLOT_MASK = np.uint64((1 << SLOT_BITS) - 1)
NUMBER_MASK = (1 << NUMBER_BITS) - 1


class Items:
    """Columns by slot, and which slots are free."""

    def __init__(self, capacity: int, *, shard: int) -> None:
        self._shard = np.uint64(shard)
        self.size = 0
        self.next_number = 0
        self._free = np.zeros(0, np.int64)
        self._free_count = 0
        self._high = 0
        self.alive = np.zeros(0, np.bool_)
        self.condemned = np.zeros(0, np.bool_)
        self.number = np.zeros(0, np.int64)
        self.writer = np.zeros(0, np.uint32)
        self.env = np.zeros(0, np.uint32)
        self.start = np.zeros(0, np.int64)
        self.length = np.zeros(0, np.int32)
        self.priority = np.zeros(0, np.float32)
        self.times_sampled = np.zeros(0, np.int32)
        self.first_place = np.zeros(0, np.int32)
        self.grow(capacity)

    COLUMNS = ("alive", "condemned", "number", "writer", "env", "start", "length", "priority", "times_sampled", "first_place")

    @property
    def capacity(self) -> int:
        return len(self.alive)

    def grow(self, capacity: int) -> None:
        """Make room for `capacity` items; memory is touched only as slots are used."""
        for name in (*self.COLUMNS, "_free"):
            old = getattr(self, name)
            new = np.zeros(capacity, old.dtype)
            new[: len(old)] = old
            setattr(self, name, new)

    def allocate(self, count: int) -> Ints:
        """Free slots for `count` new items, numbered in order."""
        reused = min(count, self._free_count)
        self._free_count -= reused
        fresh = np.arange(self._high, self._high + count - reused)
        self._high += len(fresh)
        slots = np.concatenate([self._free[self._free_count : self._free_count + reused], fresh]) if reused else fresh
        self.alive[slots] = True
        self.number[slots] = np.arange(self.next_number, self.next_number + count)
        self.next_number += count
        self.size += count
        return slots

    def free(self, slots: Ints) -> None:
        self.alive[slots] = False
        self.condemned[slots] = False
        self._free[self._free_count : self._free_count + len(slots)] = slots
        self._free_count += len(slots)
        self.size -= len(slots)

    def free_slots(self) -> Ints:
        """Slots that were used and are free, the one used next last."""
        return self._free[: self._free_count]

    def occupy(self, slots: Ints, numbers: Ints, *, free: Ints | None) -> None:
        """Fill an empty store with known slots and numbers (restore); `free` as `free_slots` gave it, if it did."""
        self.alive[slots] = True
        self.number[slots] = numbers
        self.size = len(slots)
        highest = max((int(part.max()) for part in (slots, free) if part is not None and len(part)), default=-1)
        self._high = highest + 1
        holes = np.flatnonzero(~self.alive[: self._high])[::-1] if free is None else free
        self._free[: len(holes)] = holes
        self._free_count = len(holes)

    def live(self) -> Ints:
        """Slots of all items, oldest first."""
        slots = np.flatnonzero(self.alive[: self._high])
        return slots[np.argsort(self.number[slots], kind="stable")]

    def keys(self, slots: Ints) -> Keys:
        number = (self.number[slots] & NUMBER_MASK).astype(np.uint64)
        return (self._shard << np.uint64(56)) | (number << np.uint64(SLOT_BITS)) | slots.astype(np.uint64)

    def find(self, keys: Keys) -> tuple[Ints, npt.NDArray[np.bool_]]:
        """Slots [K] of `keys` [K] and whether the item is still there; a slot without its item must not be used."""
        slots = (keys & SLOT_MASK).astype(np.int64)
        known = slots < self.capacity
        slots[~known] = 0
        number = ((keys >> np.uint64(SLOT_BITS)) & np.uint64(NUMBER_MASK)).astype(np.int64)
        known &= self.alive[slots] & ((self.number[slots] & NUMBER_MASK) == number)
        known &= keys >> np.uint64(56) == self._shard
        return slots, known

    def chunks(self, slots: Ints, *, chunk_rows: int) -> Ints:
        """How many chunks each item covers."""
        start = self.start[slots]
        return (start + self.length[slots] - 1) // chunk_rows - start // chunk_rows + 1

    def addresses(self, slots: Ints, *, chunk_rows: int) -> ChunkAddresses:
        """Where the first chunk of each item is stored."""
        return ChunkAddresses(
            writer=self.writer[slots],
            env=self.env[slots],
            chunk_no=(self.start[slots] // chunk_rows).astype(np.uint64),
        )
