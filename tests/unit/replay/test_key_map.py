"""Slots by key: pages come and go, whatever keys there are."""

from __future__ import annotations

import numpy as np

from rollstream.replay.item_keys import make_keys, shard_of
from rollstream.replay.key_map import KeyMap


def test_a_map_agrees_with_a_dictionary_over_many_batches() -> None:
    generator = np.random.default_rng(0)
    slots, plain = KeyMap(), {}
    pool = np.unique(
        np.concatenate(
            [make_keys(1, writer, 250, 40) for writer in range(8)] + [generator.integers(0, 1 << 63, 60).astype(np.uint64)]
        )
    )
    for step in range(400):
        batch = generator.permutation(pool)[:20]
        known = np.array([int(key) in plain for key in batch])
        if step % 3:
            new = batch[~known]
            slots.insert(new, np.arange(len(new)) + 1000 * step)
            plain |= {int(key): 1000 * step + place for place, key in enumerate(new)}
        else:
            slots.remove(batch[known])
            for key in batch[known]:
                del plain[int(key)]
        found, there = slots.find(pool)
        assert there.tolist() == [int(key) in plain for key in pool]
        assert found.tolist() == [plain.get(int(key), 0) for key in pool]


def test_pages_of_keys_that_are_gone_are_used_again() -> None:
    slots = KeyMap()
    for writer in range(1000):
        keys = make_keys(0, writer, 0, 300)
        slots.insert(keys, np.arange(300))
        slots.remove(keys)
    assert len(slots._held) <= 16


def test_nothing_is_found_in_an_empty_map() -> None:
    found, known = KeyMap().find(np.array([1, 2], np.uint64))
    assert (found.tolist(), known.tolist()) == ([0, 0], [False, False])


def test_a_key_tells_its_shard() -> None:
    keys = np.concatenate([make_keys(shard, (1 << 24) + 3, 5, 2) for shard in (0, 7, 255)])
    assert shard_of(keys).tolist() == [0, 0, 7, 7, 255, 255]
    assert len(np.unique(keys)) == 6
