"""Chance comes in through the door: one seed, from which every part derives a named child of its own.

A child depends on the root seed and on its name alone, so adding a part never changes the numbers of another, and a restarted
actor gets the streams it had (or, by a `restart` in its name, fresh ones).
"""

from __future__ import annotations

import hashlib

import numpy as np

__all__ = ["child_generator", "child_seed"]


def child_seed(seed: int, *name: str | int) -> int:
    """A 63-bit seed that depends on `seed` and `name` only.

    >>> child_seed(7, "actor", 0) == child_seed(7, "actor", 0) != child_seed(7, "actor", 1)
    True
    """
    text = "/".join(str(part) for part in (seed, *name))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") >> 1


def child_generator(seed: int, *name: str | int) -> np.random.Generator:
    """A NumPy generator (PCG64) seeded by `child_seed`; its `bit_generator.state` goes into checkpoints."""
    return np.random.Generator(np.random.PCG64(child_seed(seed, *name)))
