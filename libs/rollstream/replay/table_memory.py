"""How much memory a table takes, as a formula: in Redis for rows, log and snapshot, and in the shard's process for its index.

    Redis    chunks x (value + key + entry, as the allocator rounds)  +  items x (log and snapshot)
    shard    items x INDEX_ITEM_BYTES + chunks x INDEX_CHUNK_BYTES, at capacities rounded up to powers of two where arrays double
"""

from __future__ import annotations

from rollstream.store import chunk_prefix, keys

__all__ = ["chunk_memory_bytes", "index_bytes", "log_bytes", "stored_bytes"]

ENTRY_BYTES = 72
"""What Redis needs for a key beside key and value: dictionary entry, its share of the hash table, object header."""
KEY_HEADER_BYTES = 8
VALUE_HEADER_BYTES = 16
INDEX_ITEM_BYTES = 112
"""Columns of an item (46), key map (8), sampler and remover (up to 58): the largest of the usual combinations."""
INDEX_CHUNK_BYTES = 16
LOG_ITEM_BYTES = 30
"""Entries since the last snapshot: half the table's items at most, some 14 bytes each; and the snapshot, compressed, twice."""


def chunk_memory_bytes(table_id: str, chunk_bytes: int) -> int:
    """Redis memory of one chunk with its key. Redis 7 comes close, Valkey 9 needs less."""
    key_bytes = len(chunk_prefix(table_id, 0)) + keys.CHUNK_KEY_SUFFIX_BYTES
    return stored_bytes(chunk_bytes) + _allocated(key_bytes + KEY_HEADER_BYTES) + ENTRY_BYTES


def stored_bytes(value_bytes: int) -> int:
    """Memory of a value of `value_bytes`."""
    return _allocated(value_bytes + VALUE_HEADER_BYTES)


def log_bytes(max_items: int) -> int:
    """Redis memory of log and snapshot of a full table."""
    return LOG_ITEM_BYTES * max_items


def index_bytes(max_items: int, *, chunk_rows: int) -> int:
    """Memory of the index of one shard with `max_items` items."""
    slots = 1 << max(0, max_items - 1).bit_length()
    return INDEX_ITEM_BYTES * slots + INDEX_CHUNK_BYTES * -(-slots // chunk_rows)


def _allocated(size_bytes: int) -> int:
    """What jemalloc hands out for a request: multiples of 16 up to 128, then four sizes for each doubling."""
    step = 16 if size_bytes <= 128 else 1 << ((size_bytes - 1).bit_length() - 3)
    return -(-size_bytes // step) * step
