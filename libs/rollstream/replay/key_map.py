"""Which slot holds the item of a key: a page table, since keys of one writer are consecutive numbers.

    key ─▶ page (key >> 10) ─▶ searched in the sorted list of pages that are in use ─▶ 1024 slots of that page

Four bytes an item where keys are dense, no loop per item. A page goes when its last item goes; where many have few items left,
theirs go into a list of stray keys.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from rollstream.replay.stray_keys import StrayKeys
from rollstream.replay.stream_ids import distinct

__all__ = ["KeyMap"]

Ints = npt.NDArray[np.int64]
Keys = npt.NDArray[np.uint64]

PAGE_BITS = 10
PAGE = 1 << PAGE_BITS
BITS = np.uint64(PAGE_BITS)
WITHIN = np.uint64(PAGE - 1)
ONE = np.int32(1)
SPARSE = PAGE // 4
"""A page with fewer keys takes more memory than they would in a list."""
MANY = 4096
MANY_PAGES = 16


class KeyMap:
    """Slots by key.

    >>> slots = KeyMap()
    >>> slots.insert(np.array([7, 1 << 40], np.uint64), np.array([0, 5]))
    >>> found, known = slots.find(np.array([1 << 40, 8], np.uint64))
    >>> found.tolist(), known.tolist()
    ([5, 0], [True, False])
    """

    def __init__(self) -> None:
        self._pages = np.zeros(0, np.uint64)
        self._places = np.zeros(0, np.int64)
        self._entries = np.zeros(0, np.int32)  # slot + 1; 0: none
        self._held = np.zeros(0, np.int32)
        self._free: list[int] = []
        self._stray = StrayKeys()
        self._look_again_at = MANY_PAGES

    def find(self, keys: Keys) -> tuple[Ints, npt.NDArray[np.bool_]]:
        """Slots [K] of `keys` [K] and whether there is one; where not, the slot is 0 and must not be used."""
        if not len(self._pages):
            slots, known = np.zeros(len(keys), np.int64), np.zeros(len(keys), np.bool_)
        else:
            at, known = self._search(keys >> BITS)
            slots = self._entries[self._entry(at, keys)].astype(np.int64) - 1
            known &= slots >= 0
            slots[~known] = 0
        if len(self._stray) and not known.all():
            where = np.flatnonzero(~known)
            slots[where], known[where] = self._stray.find(keys[where])
        return slots, known

    def insert(self, keys: Keys, slots: Ints) -> None:
        """Note the slots [K] of new `keys` [K], which are distinct."""
        if len(self._free) <= len(keys) // PAGE + 1:  # more pages may be needed than there are
            self._give_up_sparse_pages()
        if _consecutive(keys):
            self._insert_run(int(keys[0]), slots)
            return
        if len(keys) >= MANY:
            keys, slots = self._without_stray(keys, slots)
        pages = keys >> BITS
        at, known = self._search(pages) if len(self._pages) else (slots, np.zeros(len(keys), np.bool_))
        if not known.all():
            self._add_pages(np.unique(pages[~known]))
            at, _ = self._search(pages)
        self._entries[self._entry(at, keys)] = slots + 1
        np.add.at(self._held, self._places[at], ONE)

    def remove(self, keys: Keys) -> None:
        """Forget `keys` [K], all of them known and distinct."""
        if len(self._stray):
            keys = keys[~self._stray.remove(keys)]
            if not len(keys):
                return
        if _consecutive(keys):
            self._remove_run(int(keys[0]), len(keys))
            return
        at, _ = self._search(keys >> BITS)
        self._entries[self._entry(at, keys)] = 0
        places = self._places[at]
        np.subtract.at(self._held, places, ONE)
        empty = self._held[places] == 0
        if empty.any():
            self._drop_pages(np.unique(at[empty]))

    def _insert_run(self, first: int, slots: Ints) -> None:
        """Keys `first`, `first + 1`, ...: a slice of each page."""
        for page, within, part in _parts(first, len(slots)):
            at = int(self._pages.searchsorted(np.uint64(page)))
            if at == len(self._pages) or self._pages[at] != page:
                self._add_pages(np.array([page], np.uint64))
            place = int(self._places[at])
            begin = (place << PAGE_BITS) + within
            np.add(slots[part], 1, out=self._entries[begin : begin + part.stop - part.start], casting="unsafe")
            self._held[place] += part.stop - part.start

    def _remove_run(self, first: int, count: int) -> None:
        gone: list[int] = []
        for page, within, part in _parts(first, count):
            at = int(self._pages.searchsorted(np.uint64(page)))
            place = int(self._places[at])
            begin = (place << PAGE_BITS) + within
            self._entries[begin : begin + part.stop - part.start] = 0
            self._held[place] -= part.stop - part.start
            if not self._held[place]:
                gone.append(at)
        if gone:
            self._drop_pages(np.array(gone))

    def _without_stray(self, keys: Keys, slots: Ints) -> tuple[Keys, Ints]:
        """Many keys at once, as of a restored table: those that lie far apart get no pages. Returns the others."""
        page = distinct(keys >> BITS).which
        dense = np.bincount(page)[page] >= SPARSE
        if not dense.all():
            self._stray.add(keys[~dense], slots[~dense])
        return keys[dense], slots[dense]

    def _give_up_sparse_pages(self) -> None:
        """Where items leave in another order than they came, pages with few keys left would pile up: keep their keys in a list."""
        if len(self._pages) < self._look_again_at:
            return
        sparse = np.flatnonzero(self._held[self._places] < SPARSE)
        if 2 * len(sparse) < len(self._pages):
            self._look_again_at = len(self._pages) + len(self._pages) // 8
            return
        self._look_again_at = MANY_PAGES
        by_page = self._entries.reshape(-1, PAGE)
        for begin in range(0, len(sparse), 1024):
            at = sparse[begin : begin + 1024]
            places = self._places[at]
            page, within = np.nonzero(by_page[places])
            keys = (self._pages[at[page]] << BITS) | within.astype(np.uint64)
            self._stray.add(keys, by_page[places[page], within].astype(np.int64) - 1)
            by_page[places] = 0
            self._held[places] = 0
        self._drop_pages(sparse)

    def _drop_pages(self, gone: Ints) -> None:
        self._free += self._places[gone].tolist()
        self._pages = np.delete(self._pages, gone)
        self._places = np.delete(self._places, gone)

    def _search(self, pages: Keys) -> tuple[Ints, npt.NDArray[np.bool_]]:
        at = self._pages.searchsorted(pages)
        np.minimum(at, len(self._pages) - 1, out=at)
        return at, self._pages[at] == pages

    def _entry(self, at: Ints, keys: Keys) -> Ints:
        entries: Ints = (self._places[at] << PAGE_BITS) + (keys & WITHIN).astype(np.int64)
        return entries

    def _add_pages(self, pages: Keys) -> None:
        missing = len(pages) - len(self._free)
        if missing > 0:
            used = len(self._held)
            size = max(4, used + used // 4, used + missing)
            self._held = np.concatenate([self._held, np.zeros(size - used, np.int32)])
            entries = np.zeros(size << PAGE_BITS, np.int32)
            entries[: len(self._entries)] = self._entries
            self._entries = entries
            self._free += range(size - 1, used - 1, -1)
        places = np.array([self._free.pop() for _ in range(len(pages))], np.int64)
        at = self._pages.searchsorted(pages)
        self._pages = np.insert(self._pages, at, pages)
        self._places = np.insert(self._places, at, places)


def _consecutive(keys: Keys) -> bool:
    """Whether each key is the one before plus 1, as keys of one flush are."""
    count = len(keys)
    return count > 1 and int(keys[-1]) - int(keys[0]) == count - 1 and bool((keys[1:] > keys[:-1]).all())


def _parts(first: int, count: int) -> Iterator[tuple[int, int, slice]]:
    """A run of keys by pages: page, place within it, and which of the run."""
    done = 0
    while done < count:
        within = (first + done) & (PAGE - 1)
        size = min(count - done, PAGE - within)
        yield (first + done) >> PAGE_BITS, within, slice(done, done + size)
        done += size
