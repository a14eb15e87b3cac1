"""The items of one table as records and flags by slot: `ITEM_BYTES` an item, no object per item.

An item lies in a run (an episode of one environment, see `runs`), `offset` rows after its first. `number` counts insertions;
its low 32 bits tell the order of all items that are alive at the same time.
"""

from __future__ import annotations

import mmap

import numpy as np
import numpy.typing as npt

from rollstream.replay.item_keys import Keys
from rollstream.replay.key_map import KeyMap
from rollstream.spaces.opaque import opaque

__all__ = ["ITEM_BYTES", "RECORD", "Items"]

Ints = npt.NDArray[np.int64]
LOW = 0xFFFFFFFF

RECORD = np.dtype(
    [
        ("key", "u8"),
        ("number", "u4"),
        ("run", "i4"),
        ("offset", "u4"),
        ("length", "i4"),
        ("first_place", "i4"),
        ("priority", "f4"),
        ("version", "u4"),
        ("born", "u4"),
        ("times_sampled", "i4"),
        ("lead", "u2"),
    ],
    align=True,
)
"""One item: bytes that lie together, because an item drawn at random costs a fetch from memory for each place that is looked at.

Flags stand apart, since all of them are looked through now and then.
"""
PLAIN = opaque(RECORD.itemsize)
"""A record as so many bytes: NumPy copies records by fields, ten times as slow, unless it does not see them."""
FLAGS = ("alive", "condemned", "gated")
ITEM_BYTES = RECORD.itemsize + len(FLAGS)


class Items:
    """Columns by slot, which slots are free, and slots by key.

    Attributes:
        records: all columns but the flags; each of them is an attribute too, a view.
        condemned: chosen to make room for the block that is being admitted; not in the remover any more.
        gated: too old to be sampled; not in the sampler any more.
        born: low bits of the row clock when the item came.
        first_place: place of the item's first chunk.
    """

    records: npt.NDArray[np.void]
    _bytes: npt.NDArray[np.void]
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
        self.records = np.zeros(0, RECORD)
        for flag in FLAGS:
            setattr(self, flag, np.zeros(0, np.bool_))
        self.grow(capacity)

    @property
    def capacity(self) -> int:
        return len(self.records)

    def grow(self, capacity: int) -> None:
        """Make room for `capacity` items; memory is touched only as slots are used."""
        free = self.free_slots()
        for name in ("records", *FLAGS):
            old = getattr(self, name)
            new = np.zeros(capacity, old.dtype)
            new[: len(old)] = old
            setattr(self, name, new)
        for column in RECORD.names or ():
            setattr(self, column, self.records[column])
        self._bytes = self.records.view(PLAIN)
        self._free = np.zeros(capacity, np.int32)
        self._free[: len(free)] = free
        self._free_head = 0

    def copied(self, room: npt.NDArray[np.void] | None = None) -> npt.NDArray[np.void]:
        """A copy of all records of slots that were ever used; in `room`, when it is large enough."""
        if room is None or len(room) < self.high:
            room = np.empty(self.high, PLAIN)
        room[: self.high] = self._bytes[: self.high]
        records: npt.NDArray[np.void] = room[: self.high].view(RECORD)
        return records

    def room(self) -> npt.NDArray[np.void]:
        """Memory for a copy of all records that is the process' own already; a little more than is needed now. From any thread.

        Mapped by itself: what a thread frees stays in that thread's heap, and the next room may be got by another thread.
        """
        slots = self.high + self.high // 32 + 1024
        room = np.frombuffer(mmap.mmap(-1, slots * PLAIN.itemsize), np.uint8)
        room[:: mmap.PAGESIZE] = 0
        return room.view(PLAIN)

    def allocate(self, records: npt.NDArray[np.void]) -> Ints:
        """Put new items, whose `records` [K] lack only the number, into free slots, numbered in order; returns the slots.

        Unused slots first, then those that were freed first: so which item gets which slot depends on the order of inserts and
        removals alone, not on how many went in at once, and neither do the draws of selectors.
        """
        count = len(records)
        fresh = min(count, self.capacity - self.high)
        slots = np.arange(self.high, self.high + fresh)
        self.high += fresh
        if fresh < count:
            reused = count - fresh
            slots = np.concatenate([slots, self._free[self._ring(self._free_head, reused)].astype(np.int64)])
            self._free_head = (self._free_head + reused) % self.capacity
            self._free_count -= reused
        records["number"] = np.arange(self.next_number, self.next_number + count)
        self._bytes[slots] = records.view(PLAIN)
        self.alive[slots] = True
        self.by_key.insert(np.ascontiguousarray(records["key"]), slots)
        self.next_number += count
        self.size += count
        return slots

    def free(self, slots: Ints, keys: Keys) -> None:
        """Let `slots` [K], whose items have `keys` [K], be used again; their columns stay readable until then."""
        self.by_key.remove(keys)
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
