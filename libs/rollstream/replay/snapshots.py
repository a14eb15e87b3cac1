"""Snapshots of a table shard in Redis: one string per array, and a hash that names the newest complete set.

    <shard>:snapshot:<generation>:<array>     written first, piece by piece
    <shard>:snapshot  {generation, facts, arrays}   then switched over in one transaction that also trims the log
    older generation                          deleted last

A process that dies on the way leaves the previous snapshot in force, and its own pieces to be overwritten. An array with
another checksum is as good as lost; without its priorities a snapshot is still of use (they start at the highest so far).
"""

from __future__ import annotations

import contextlib
import json
import logging
import zlib
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import zstandard

from rollstream.errors import StoreError
from rollstream.replay.packed import PackedArrays
from rollstream.store import Store, keys

__all__ = ["Snapshots"]

_LOG = logging.getLogger("rollstream.replay")
PIECE_BYTES = 8 << 20
REBUILT = ".priority"
GRADUAL = (".key", ".number", ".run", ".slot", ".offset", ".born")
"""Columns that grow by small steps from item to item: stored as differences, which compress to next to nothing."""


class Snapshots:
    """Saves and loads the snapshots of one table shard."""

    def __init__(self, store: Store, *, table_id: str, shard: int, guard: Any) -> None:
        self._store = store
        self._table_id = table_id
        self._shard = shard
        self._guard = guard
        self._pieces: list[str] = []

    def save(self, snapshot: PackedArrays) -> None:
        """Write `snapshot`, whose facts hold its `generation` and the log id `after` which entries are not in it."""
        generation = int(snapshot.facts["generation"])
        written: list[str] = []
        entries: dict[str, dict[str, Any]] = {}
        together: dict[str, bytes] = {}
        try:
            for name, array in snapshot.arrays.items():
                buffer = _compressed(name, array)
                count = max(1, -(-len(buffer) // PIECE_BYTES))
                entries[name] = {"dtype": array.dtype.str, "count": len(array), "pieces": count, "crc": zlib.crc32(buffer)}
                for piece in range(count):
                    part = buffer[piece * PIECE_BYTES : (piece + 1) * PIECE_BYTES]
                    if sum(map(len, together.values())) + len(part) > PIECE_BYTES:
                        self._write(together, written)
                        together = {}
                    together[self._key(f"{generation}:{name}:{piece}")] = part
            self._write(together, written)
        except StoreError:
            self._discard(written)  # Redis may be full, and they would fill it
            raise
        fields = {"generation": str(generation), "facts": json.dumps(snapshot.facts), "arrays": json.dumps(entries)}

        def fill(pipeline: Any) -> None:
            pipeline.hset(self._key(), mapping=fields)
            pipeline.hset(keys.table_position(self._table_id, self._shard), "generation", generation)
            pipeline.xtrim(keys.table_log(self._table_id, self._shard), minid=_following(str(snapshot.facts["after"])))

        self._guard(f"switch to snapshot {generation} of table {self._table_id}", fill)
        older, self._pieces = self._pieces, self._piece_keys(generation, entries)
        if older:
            self._store.run("delete the previous snapshot", lambda client: client.unlink(*older))

    def load(self) -> PackedArrays | None:
        """The newest snapshot; None when there is none, or nothing of use is left of it."""
        reply: Any = self._store.run("read the snapshot of a table", lambda client: client.hgetall(self._key()))
        if not reply:
            return None
        generation, facts, entries = int(reply[b"generation"]), json.loads(reply[b"facts"]), json.loads(reply[b"arrays"])
        self._pieces = self._piece_keys(generation, entries)
        arrays = {name: self._load_array(generation, name, entry) for name, entry in entries.items()}
        lost = sorted(name for name, array in arrays.items() if array is None)
        if lost:
            _LOG.error("snapshot %d of table %s shard %d has lost: %s", generation, self._table_id, self._shard, ", ".join(lost))
        if any(not name.endswith(REBUILT) for name in lost):
            return None
        return PackedArrays(facts=facts, arrays={name: array for name, array in arrays.items() if array is not None})

    def _discard(self, written: list[str]) -> None:
        if not written:
            return
        with contextlib.suppress(StoreError):  # after the loss of the lease they may be pieces of the next owner's
            self._guard("delete parts of a snapshot", lambda pipeline: pipeline.unlink(*written))

    def _write(self, together: dict[str, bytes], written: list[str]) -> None:
        """Some pieces in one transaction: most arrays are small once compressed, and each transaction takes three round trips."""
        if together:
            written += together  # before: where the reply is lost they may be there
            self._guard("write a snapshot", partial(_set, together))  # a former owner must not overwrite the pieces of the next

    def _load_array(self, generation: int, name: str, entry: dict[str, Any]) -> npt.NDArray[Any] | None:
        names = [self._key(f"{generation}:{name}:{piece}") for piece in range(entry["pieces"])]
        parts: Any = self._store.run("read a snapshot", lambda client: [client.get(key) for key in names])
        buffer = b"".join(part or b"" for part in parts)
        if zlib.crc32(buffer) != entry["crc"]:
            return None
        dtype = np.dtype(entry["dtype"])
        size = entry["count"] * dtype.itemsize
        array = np.frombuffer(zstandard.ZstdDecompressor().decompress(buffer, max_output_size=max(1, size)), dtype)
        return np.cumsum(array, dtype=dtype) if name.endswith(GRADUAL) else array

    def _piece_keys(self, generation: int, entries: dict[str, Any]) -> list[str]:
        return [self._key(f"{generation}:{name}:{piece}") for name, entry in entries.items() for piece in range(entry["pieces"])]

    def _key(self, part: str = "") -> str:
        return keys.table_snapshot(self._table_id, self._shard, part)


def _compressed(name: str, array: npt.NDArray[Any]) -> bytes:
    stored = np.ascontiguousarray(array)
    if name.endswith(GRADUAL):
        stored = np.diff(stored, prepend=stored.dtype.type(0))
    return zstandard.ZstdCompressor(level=1).compress(stored.reshape(-1).view(np.uint8).data)


def _set(values: dict[str, bytes], pipeline: Any) -> None:
    for key, value in values.items():
        pipeline.set(key, value)


def _following(log_id: str) -> str:
    milliseconds, number = log_id.split("-")
    return f"{milliseconds}-{int(number) + 1}"
