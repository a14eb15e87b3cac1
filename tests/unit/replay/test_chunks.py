"""Chunk references: what is still held, and what becomes garbage, once."""

from __future__ import annotations

import numpy as np

from rollstream.replay.chunks import ChunkAddresses, ChunkReferences


def addresses(chunk_no: list[int]) -> ChunkAddresses:
    count = len(chunk_no)
    return ChunkAddresses(
        writer=np.full(count, 1, np.uint32), env=np.zeros(count, np.uint32), chunk_no=np.array(chunk_no, np.uint64)
    )


def test_a_chunk_goes_when_its_last_holder_goes() -> None:
    references = ChunkReferences()
    places = references.allocate(4)
    references.link(places)
    first, chunks = places[[0, 1]], np.array([3, 2])  # items over chunks 0-2 and 1-2
    references.hold(first, chunks)
    references.release(places, np.ones(4, np.int64), addresses([0, 1, 2, 3]).at)  # the writer lets go of all
    assert references.take_garbage().chunk_no.tolist() == [3]
    references.release(first[:1], chunks[:1], addresses([0]).at)
    assert references.take_garbage().chunk_no.tolist() == [0]
    references.release(first[1:], chunks[1:], addresses([1]).at)
    assert sorted(references.take_garbage().chunk_no.tolist()) == [1, 2]
    assert references.held == 0


def test_two_items_released_together_free_a_shared_chunk_once() -> None:
    references = ChunkReferences()
    places = references.allocate(3)
    references.link(places)
    references.hold(places[[0, 1, 0]], np.array([2, 2, 3]))
    references.release(places, np.ones(3, np.int64), addresses([0, 1, 2]).at)
    references.release(places[[0, 1, 0]], np.array([2, 2, 3]), addresses([0, 1, 0]).at)
    assert sorted(references.take_garbage().chunk_no.tolist()) == [0, 1, 2]
    assert references.held == 0


def test_places_of_freed_chunks_are_used_again() -> None:
    references = ChunkReferences()
    for _ in range(10):
        places = references.allocate(1000)
        references.release(places, np.ones(1000, np.int64), addresses(list(range(1000))).at)
        assert len(references.take_garbage()) == 1000
    assert places.max() < 1000


def test_rebuilding_counts_how_often_each_place_is_named() -> None:
    references = ChunkReferences()
    references.rebuild(np.array([0, 0, 1]))
    references.release(np.array([0, 1]), np.array([1, 1]), addresses([7, 8]).at)
    assert references.take_garbage().chunk_no.tolist() == [8]
    assert references.held == 1
