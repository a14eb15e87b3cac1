"""Keys of items: made by the writer, so that it knows them at once, and telling by arithmetic which shard holds the item.

    key u8 = shard (8 bits) | writer (24 bits) | ordinal (32 bits)

The ordinal counts the items that the writer made, over all tables of its row space. A key stays with its item through
snapshots, restores and changes of the table's size.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["Keys", "make_keys", "shard_of"]

Keys = npt.NDArray[np.uint64]

SHARD_SHIFT = 56
WRITER_SHIFT = 32
WRITER_MASK = (1 << 24) - 1


def make_keys(shard: int, writer: int, first_ordinal: int, count: int) -> Keys:
    """Keys [count] of the items `first_ordinal`, `first_ordinal + 1`, ... of a writer.

    >>> [hex(key) for key in make_keys(1, 2, 3, 2).tolist()]
    ['0x100000200000003', '0x100000200000004']
    """
    base = (shard << SHARD_SHIFT) | ((writer & WRITER_MASK) << WRITER_SHIFT)
    ordinals = (first_ordinal + np.arange(count, dtype=np.uint64)) & np.uint64(0xFFFFFFFF)
    keys: Keys = np.uint64(base) | ordinals
    return keys


def shard_of(keys: Keys) -> npt.NDArray[np.int64]:
    """Number of the shard that holds each key. Shapes: [K] -> [K]."""
    return (keys >> np.uint64(SHARD_SHIFT)).astype(np.int64)
