"""Finding keys of a table shard by scanning: for tables that are dropped, and for rows that no item knows any more.

Scanning looks at every key of the database once, in small steps; it is for rare events only.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Any

from rollstream.store import Store, chunk_prefix

__all__ = ["sweep_table"]

SCAN_KEYS = 2000
CHUNK_SUFFIX = rb"[0-9a-f]{8}:[0-9a-f]{8}:[0-9a-f]{16}"


def sweep_table(store: Store, *, table_id: str, shard: int, everything: bool = False) -> int:
    """Delete all chunks of a shard, or with `everything` all its keys; returns how many."""
    prefix = chunk_prefix(table_id, shard)
    chunk = re.compile(re.escape(prefix) + CHUNK_SUFFIX)
    pattern = b"".join(b"\\" + bytes([byte]) if byte in b"*?[]\\" else bytes([byte]) for byte in prefix) + b"*"
    deleted, cursor = 0, 0
    while True:
        reply: Any = store.run(
            f"look for keys of table {table_id}",
            partial(_scan, cursor, pattern),
        )
        cursor, found = reply
        doomed = [key for key in found if everything or chunk.fullmatch(key)]
        if doomed:
            deleted += int(store.run("delete keys of a table", partial(_unlink, doomed)))
        if not cursor:
            return deleted


def _scan(cursor: int, pattern: bytes, client: Any) -> Any:
    return client.scan(cursor=cursor, match=pattern, count=SCAN_KEYS)


def _unlink(doomed: list[bytes], client: Any) -> Any:
    return client.unlink(*doomed)
