"""Which chunks are still needed: a count of holders per chunk, kept in batches.

A holder is an item that covers the chunk, or the writer that may still make an item over it (a pin). A chunk has a small number
(its place in two arrays) and a link to the next chunk of the same environment; an item remembers only the place of its first
chunk. So holding and releasing is a walk along the links, one NumPy step per chunk of the longest item, whatever the batch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

__all__ = ["ChunkAddresses", "ChunkReferences"]

Ints = npt.NDArray[np.int64]

ONE = np.int32(1)
"""Of the type of the counts: a Python 1 would cost `ufunc.at` a hundred times as much."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkAddresses:
    """Chunks by writer u4 [K], environment u4 [K] and chunk number u8 [K]: what their keys are made of."""

    writer: npt.NDArray[np.uint32]
    env: npt.NDArray[np.uint32]
    chunk_no: npt.NDArray[np.uint64]

    def __len__(self) -> int:
        return len(self.chunk_no)

    def at(self, which: Ints) -> ChunkAddresses:
        """Some of them."""
        return ChunkAddresses(writer=self.writer[which], env=self.env[which], chunk_no=self.chunk_no[which])

    @staticmethod
    def concatenate(parts: list[ChunkAddresses]) -> ChunkAddresses:
        if len(parts) == 1:
            return parts[0]
        return ChunkAddresses(
            writer=np.concatenate([part.writer for part in parts] or [np.zeros(0, np.uint32)]),
            env=np.concatenate([part.env for part in parts] or [np.zeros(0, np.uint32)]),
            chunk_no=np.concatenate([part.chunk_no for part in parts] or [np.zeros(0, np.uint64)]),
        )


class ChunkReferences:
    """Holders per chunk place, links between places, and the addresses of chunks that nobody holds any more."""

    def __init__(self) -> None:
        self._holders = np.zeros(1024, np.int32)
        self._next = np.zeros(1024, np.int32)
        self._free = np.zeros(1024, np.int32)
        self._scratch = np.zeros(1024, np.int32)
        self._sizes: npt.NDArray[np.int32] | None = None
        self._free_count = 0
        self._high = 0
        self._garbage: list[ChunkAddresses] = []
        self.stored_bytes = 0

    @property
    def held(self) -> int:
        """Chunks that somebody holds: the live row data of the table."""
        return self._high - self._free_count

    def allocate(self, count: int, *, sizes: npt.NDArray[np.uint32] | None = None) -> Ints:
        """Places for `count` new chunks, each held once (by its writer), and the bytes that each takes if they are not all alike."""
        reused = min(count, self._free_count)
        self._free_count -= reused
        fresh = np.arange(self._high, self._high + count - reused)
        self._high += len(fresh)
        if self._high > len(self._holders):
            self._grow(self._high)
        places = np.concatenate([self._free[self._free_count : self._free_count + reused].astype(np.int64), fresh])
        self._holders[places] = 1
        if sizes is not None:
            if self._sizes is None:
                self._sizes = np.zeros(len(self._holders), np.int32)
            self._sizes[places] = sizes
            self.stored_bytes += int(sizes.sum())
        return places

    def link(self, places: Ints) -> None:
        """Let each place lead to the next one in `places`: consecutive chunks of one environment (or of no matter which)."""
        self._next[places[:-1]] = places[1:]

    def hold(self, first: Ints, chunks: Ints) -> None:
        """Count one holder more for the `chunks` [K] places that start at `first` [K]."""
        if len(chunks) and int(chunks.max()) == 1:
            np.add.at(self._holders, first, ONE)
            return
        for at in self._walk(first, chunks):
            np.add.at(self._holders, at.places, ONE)

    def release(self, first: Ints, chunks: Ints, addresses: Callable[[Ints], ChunkAddresses]) -> None:
        """Count one holder less for the `chunks` [K] places from `first` [K].

        Args:
            addresses: gives, for some of the K, where the first chunk of each is stored; asked only when a chunk is free now.
        """
        if not len(chunks):
            return
        if int(chunks.max()) == 1:
            self._give_back(self._let_go(first, addresses))
            return
        freed: list[Ints] = []
        for at in self._walk(first, chunks):
            freed.append(self._let_go(at.places, partial(_later_chunks, addresses, at)))
        for places in freed:
            self._give_back(places)

    def _let_go(self, places: Ints, addresses: Callable[[Ints], ChunkAddresses]) -> Ints:
        """Count one holder less for each of `places` [K]; those that nobody holds now become garbage, and are returned."""
        np.subtract.at(self._holders, places, ONE)
        empty = (self._holders[places] == 0).nonzero()[0]
        if not len(empty):
            return np.zeros(0, np.int64)
        freed: Ints = places[empty]
        self._scratch[freed] = empty
        once = self._scratch[freed] == empty  # of a place that occurs twice, one stays
        if not once.all():
            freed, empty = freed[once], empty[once]
        self._garbage.append(addresses(empty))
        return freed

    def drop_first_hold(self, places: Ints) -> None:
        """Take back the hold with which `places` [K] were allocated, where items hold them too."""
        self._holders[places] -= ONE

    def take_garbage(self) -> ChunkAddresses:
        """Addresses of chunks that lost their last holder since the last call: to be unlinked."""
        garbage, self._garbage = self._garbage, []
        return ChunkAddresses.concatenate(garbage)

    @property
    def garbage_waiting(self) -> int:
        return sum(map(len, self._garbage))

    def rebuild(self, places: Ints, *, stored_bytes: int = 0) -> None:
        """Start again with chunks 0..max in address order, held as often as they occur in `places`, each leading to the next.

        Of chunks of varying size only the sum is known then; each counts as the average.
        """
        self._high = int(places.max()) + 1 if len(places) else 0
        self._free_count = 0
        self._garbage = []
        self._grow(self._high)
        self._holders[: self._high] = np.bincount(places, minlength=self._high)
        self._next[: self._high] = np.arange(1, self._high + 1)
        self._sizes, self.stored_bytes = None, 0
        if stored_bytes and self._high:
            self._sizes = np.zeros(len(self._holders), np.int32)
            self._sizes[: self._high] = stored_bytes // self._high
            self.stored_bytes = stored_bytes // self._high * self._high

    def _walk(self, first: Ints, chunks: Ints) -> _Walk:
        return _Walk(self._next, first, chunks)

    def _give_back(self, places: Ints) -> None:
        if self._sizes is not None:
            self.stored_bytes -= int(self._sizes[places].sum())
        end = self._free_count + len(places)
        self._free[self._free_count : end] = places[::-1]
        self._free_count = end

    def _grow(self, needed: int) -> None:
        size = max(1024, 1 << (max(1, needed) - 1).bit_length())
        if size <= len(self._holders):
            return
        for name in ("_holders", "_next", "_free", "_scratch", "_sizes"):
            old = getattr(self, name)
            if old is None:
                continue
            new = np.zeros(size, np.int32)
            new[: len(old)] = old
            setattr(self, name, new)


@dataclass(slots=True)
class _Step:
    """Where the items stand that still have a chunk at this step: indices into the batch, and places."""

    step: int
    items: Ints
    places: Ints


class _Walk:
    """Iterates the steps of a walk along the links: step j visits chunk j of every item that has one."""

    def __init__(self, following: npt.NDArray[np.int32], first: Ints, chunks: Ints) -> None:
        self._following = following
        self._chunks = chunks
        self._last = int(chunks.max()) if len(chunks) else 0
        self._uniform = len(chunks) > 0 and int(chunks.min()) == self._last
        self._at = _Step(step=-1, items=np.arange(len(first)), places=first)

    def __iter__(self) -> _Walk:
        return self

    def __next__(self) -> _Step:
        at = self._at
        step = at.step + 1
        if step >= self._last:
            raise StopIteration
        if step > 0:
            items, places = at.items, at.places
            if not self._uniform:
                more = self._chunks[items] > step
                items, places = items[more], places[more]
            self._at = at = _Step(step=step, items=items, places=self._following[places].astype(np.int64))
        else:
            self._at = at = _Step(step=0, items=at.items, places=at.places)
        return at


def _later_chunks(addresses: Callable[[Ints], ChunkAddresses], at: _Step, which: Ints) -> ChunkAddresses:
    """Addresses of the chunks that a walk has reached, from those of the first chunks."""
    first = addresses(at.items[which])
    return ChunkAddresses(writer=first.writer, env=first.env, chunk_no=first.chunk_no + np.uint64(at.step))
