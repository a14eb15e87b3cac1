"""Finding keys of a table shard by scanning: for tables that are dropped, and for rows that no item knows any more.

Scanning looks at every key of the database once, in small steps; it is for rare events only.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from rollstream.store import Store, chunk_prefix, keys

__all__ = ["sweep_prefix", "sweep_table"]

SCAN_KEYS = 2000


def sweep_table(store: Store, *, table_id: str, shard: int, everything: bool = False) -> int:
    """Delete all chunks of a shard, or with `everything` all its keys; returns how many."""
    chunk = chunk_prefix(table_id, shard)
    chunk_key_bytes = len(chunk) + keys.CHUNK_KEY_SUFFIX_BYTES

    def meant(key: bytes) -> bool:
        return everything or (len(key) == chunk_key_bytes and key.startswith(chunk))

    return _sweep(store, keys.shard_prefix(table_id, shard).encode(), meant)


def sweep_prefix(store: Store, prefix: bytes) -> int:
    """Delete all keys of the shard whose keys start with `prefix` (`keys.shard_prefix`); returns how many."""
    return _sweep(store, prefix, lambda key: True)


def _sweep(store: Store, prefix: bytes, meant: Callable[[bytes], bool]) -> int:
    pattern = prefix + b"*"  # letters and digits in braces: none means anything else
    deleted, cursor = 0, 0
    while True:
        reply: Any = store.run("look for keys of a table", partial(_scan, cursor, pattern))
        cursor, found = reply
        doomed = [key for key in found if meant(key)]
        if doomed:
            deleted += int(store.run("delete keys of a table", partial(_unlink, doomed)))
        if not cursor:
            return deleted


def _scan(cursor: int, pattern: bytes, client: Any) -> Any:
    return client.scan(cursor=cursor, match=pattern, count=SCAN_KEYS)


def _unlink(doomed: list[bytes], client: Any) -> Any:
    return client.unlink(*doomed)
