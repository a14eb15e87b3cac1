"""How much memory a table takes, as a formula: in Redis for rows, log and snapshot, and in the shard's process for its index.

Redis    chunks x (value + key + entry, as the allocator rounds)  +  rows that wait for their deletion  +  log and snapshot
shard    items x (columns + key map + selectors + a snapshot being made)  +  chunks x INDEX_CHUNK_BYTES

To both comes what writers have in flight: of each writer at most `unread_entries` flushes and `unread_bytes`.
"""

from __future__ import annotations

from rollstream.replay.items import ITEM_BYTES
from rollstream.replay.selector_spec import Sampler
from rollstream.replay.selectors.memory import slot_bytes
from rollstream.store import chunk_prefix, keys

__all__ = [
    "GARBAGE_LEAST_BYTES",
    "SHARD_WORKING_BYTES",
    "SNAPSHOT_EVERY_ITEMS",
    "chunk_memory_bytes",
    "garbage_bytes",
    "garbage_chunks_allowed",
    "index_bytes",
    "log_bytes",
    "stored_bytes",
]

ENTRY_BYTES = 72
"""What Redis needs for a key beside key and value: dictionary entry, its share of the hash table, object header."""
KEY_HEADER_BYTES = 8
VALUE_HEADER_BYTES = 16

SNAPSHOT_EVERY_ITEMS = 50_000
"""Log items after which a snapshot pays: it costs about twice what they cost, and bounds the log that a restart reads."""
LOG_ITEM_BYTES = 24
"""An item in the log when a flush holds few; 13 where it holds hundreds."""
SNAPSHOT_ITEM_BYTES = 20
"""An item in the snapshot, compressed, twice while the next one is written."""

GARBAGE_SHARE = 32
GARBAGE_LEAST_BYTES = 1 << 20
"""Rows that nobody needs stay for a moment, for clients that are fetching them: some are being deleted, some are next, some have just
become so. Of each not more than this share of what the table holds (or this many bytes, in a small one), however fast it turns over:
writers get no credit while there are more."""

FREE_SLOT_BYTES = 4
USES_LEFT_BYTES = 4
KEY_MAP_BYTES = 6
SPARSE_KEY_MAP_BYTES = 32
"""Where items leave in another order than they came, so that those that stay lie far apart among the keys."""
CAPTURE_ITEM_BYTES = 102
"""Copies of an item's columns while a snapshot is made: as they lie, and in order."""
INDEX_CHUNK_BYTES = 20
SHARD_WORKING_BYTES = 10 << 20
"""Entries that are read and buffers, of a shard's process as a whole, beside its indexes; most on a busy machine, where more waits."""


def chunk_memory_bytes(table_id: str, chunk_bytes: int) -> int:
    """Redis memory of one chunk with its key. Redis 7 comes close, Valkey 9 needs less."""
    key_bytes = len(chunk_prefix(table_id, 0)) + keys.CHUNK_KEY_SUFFIX_BYTES
    return stored_bytes(chunk_bytes) + _allocated(key_bytes + KEY_HEADER_BYTES) + ENTRY_BYTES


def stored_bytes(value_bytes: int) -> int:
    """Memory of a value of `value_bytes`."""
    return _allocated(value_bytes + VALUE_HEADER_BYTES)


def garbage_chunks_allowed(held_chunks: int, *, least_chunks: int) -> int:
    """How many deleted chunks may wait for their time, when the table holds `held_chunks`."""
    return max(least_chunks, held_chunks // GARBAGE_SHARE)


def garbage_bytes(rows_bytes: int) -> int:
    """Redis memory of rows that wait for their deletion, beside `rows_bytes` of rows that are needed."""
    return 3 * max(GARBAGE_LEAST_BYTES, rows_bytes // GARBAGE_SHARE)


def log_bytes(max_items: int) -> int:
    """Redis memory of log and snapshot of a full table."""
    return LOG_ITEM_BYTES * max(SNAPSHOT_EVERY_ITEMS, max_items // 2) + SNAPSHOT_ITEM_BYTES * max_items


def index_bytes(max_items: int, *, chunk_rows: int, sampler: Sampler, remover: Sampler, limited_uses: bool = False) -> int:
    """Memory of the index of one shard with `max_items` items."""
    item = ITEM_BYTES + FREE_SLOT_BYTES + CAPTURE_ITEM_BYTES + slot_bytes(sampler) + slot_bytes(remover)
    item += KEY_MAP_BYTES if remover.kind in ("fifo", "lifo") and not limited_uses else SPARSE_KEY_MAP_BYTES
    item += USES_LEFT_BYTES if limited_uses else 0
    return int(item * max_items) + INDEX_CHUNK_BYTES * -(-max_items // chunk_rows)


def _allocated(size_bytes: int) -> int:
    """What jemalloc hands out for a request: multiples of 16 up to 128, then four sizes for each doubling."""
    step = 16 if size_bytes <= 128 else 1 << ((size_bytes - 1).bit_length() - 3)
    return -(-size_bytes // step) * step
