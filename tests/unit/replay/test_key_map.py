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


def test_keys_that_lie_far_apart_take_little_memory_and_are_found() -> None:
    generator = np.random.default_rng(0)
    slots, plain = KeyMap(), {}
    for step in range(400):
        keys = make_keys(0, 1, 4096 * step, 4096)
        slots.insert(keys, np.arange(4096) + 4096 * step)
        plain |= {int(key): 4096 * step + place for place, key in enumerate(keys)}
        stay = generator.random(4096) < 0.01  # the others leave at once, and some of those that stayed leave later
        gone = np.concatenate(
            [keys[~stay], generator.permutation(np.array(sorted(set(plain) - set(keys.tolist())), np.uint64))[:30]]
        )
        slots.remove(generator.permutation(gone))
        for key in gone.tolist():
            del plain[key]
    everything = np.array(sorted(plain), np.uint64)
    found, known = slots.find(np.append(everything, make_keys(0, 1, 1 << 24, 5)))
    assert known.tolist() == [True] * len(plain) + [False] * 5
    assert found[:-5].tolist() == [plain[key] for key in everything.tolist()]
    assert len(plain) > 3000
    held_bytes = slots._entries.nbytes + slots._stray._keys.nbytes + slots._stray._slots.nbytes
    assert held_bytes < 100 * len(plain), "not a page each"


def test_stray_keys_are_put_in_at_once_without_pages() -> None:
    keys = np.arange(10_000, dtype=np.uint64) << np.uint64(12)
    slots = KeyMap()
    slots.insert(keys, np.arange(10_000))
    assert slots._entries.nbytes == 0
    assert slots.find(keys)[0].tolist() == list(range(10_000))
    slots.insert(keys + np.uint64(1), np.arange(10_000))
    slots.remove(keys[:9_000])
    assert slots.find(keys)[1].tolist() == [False] * 9_000 + [True] * 1_000
    assert slots.find(keys + np.uint64(1))[1].all()
