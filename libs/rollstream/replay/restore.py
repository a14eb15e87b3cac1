"""Takes the parts of an export in: rows are written anew under a new writer's name, items get their new addresses.

    ROWS ─▶ Redis, part by part            INDX ─▶ the index of each shard, to be handed to it at the end

The table itself changes only when a shard gets its index, in one step: an export that turns out damaged half-way leaves rows
behind that the shards sweep, and nothing else. With as many shards as before each goes back to its own, and items keep their keys.
With another number, environments are dealt out anew and with them their items, whose keys are made anew.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.clock import Clock
from rollstream.errors import SchemaMismatch, TableError
from rollstream.replay.export_parts import ExportPart
from rollstream.replay.item_keys import make_keys
from rollstream.replay.packed import PackedArrays
from rollstream.replay.spec import TableSpec
from rollstream.replay.stream_ids import distinct, stream_ids
from rollstream.seeding import child_seed
from rollstream.store import Address, ChunkWriter, Store, chunk_prefix, keys

__all__ = ["Restoration"]

Ints = npt.NDArray[np.int64]
Arrays = dict[str, npt.NDArray[Any]]
WRITER_BITS = 32


class Restoration:
    """One restore under way.

    Args:
        rows_id: id of the table that the rows are to belong to.
        spec: of the table that takes the items.
        from_shards: how many shards the exported table had.
        what: how errors call the export.
        write_deadline_s: how long one write of rows tries.
    """

    def __init__(
        self,
        *,
        store: Store,
        address: Address,
        clock: Clock,
        rows_id: str,
        spec: TableSpec,
        from_shards: int,
        what: str,
        write_deadline_s: float,
    ) -> None:
        writer: Any = store.run("take a writer id", lambda client: client.incr(keys.writers()), deadline_s=write_deadline_s)
        self._writer = int(writer) & ((1 << WRITER_BITS) - 1)
        self._chunks = ChunkWriter(address, clock=clock, deadline_s=write_deadline_s)
        self._prefixes = [chunk_prefix(rows_id, shard) for shard in range(spec.shards)]
        self._spec = spec
        self._dealt_anew = from_shards != spec.shards
        self._what = what
        self._environments: list[dict[int, int]] = [{} for _ in range(spec.shards)]
        self._indices: list[PackedArrays] = []
        self._stored_bytes = 0

    def close(self) -> None:
        """Close the connection for rows."""
        self._chunks.close()

    def take(self, part: ExportPart) -> None:
        """Take up a part with rows or items."""
        if part.kind == "ROWS":
            self._write(part.content)
        elif part.kind == "INDX":
            self._indices.append(part.content)

    def indices(self) -> list[PackedArrays]:
        """What each shard is to be given, after the last part.

        Raises:
            TableError: the export holds none of the rows.
        """
        exported = sum(int(index.facts["items_in_table"]) for index in self._indices)
        if exported and not any(len(index.arrays["number"]) for index in self._indices):
            raise TableError(
                f"{self._what} holds no rows of its {exported} items; raise rows_max_bytes of the checkpoint to restore tables"
            )
        if not self._dealt_anew:
            return [
                self._addressed(index, shard, slice(None), keep_keys=True)
                for shard, index in enumerate(sorted(self._indices, key=lambda index: int(index.facts["shard"])))
            ]
        return self._dealt()

    # --- inside ----------------------------------------------------------------------------------------------------------

    def _write(self, rows: PackedArrays) -> None:
        arrays = rows.arrays
        streams = stream_ids(arrays["writer"], arrays["env"])
        payload, sizes = arrays["payload"], arrays.get("value_bytes")
        if sizes is None and payload.shape[1:] != (self._spec.chunk_bytes,):
            raise SchemaMismatch(
                f"{self._what} has chunks u1{list(payload.shape)} where the table's hold {self._spec.chunk_bytes} bytes"
            )
        targets = self._targets(streams, int(rows.facts["shard"]))
        for shard in distinct(targets).values.tolist():
            which = np.flatnonzero(targets == shard)
            env = self._numbered(shard, streams[which]).astype(np.uint32)
            number = arrays["number"][which].astype(np.uint64)
            if sizes is None:
                chosen = payload if len(which) == len(payload) else payload[which]
                self._chunks.write(self._prefixes[shard], self._writer, env, number, chosen)
            else:
                ends = np.cumsum(sizes.astype(np.int64))
                buffer = np.ascontiguousarray(payload).data
                values = [buffer[int(ends[at] - sizes[at]) : int(ends[at])] for at in which.tolist()]
                self._chunks.write_values(self._prefixes[shard], self._writer, env, number, values)
        self._stored_bytes += payload.nbytes

    def _targets(self, streams: npt.NDArray[np.uint64], shard: int) -> Ints:
        """The shard that each stream goes to [K]."""
        if not self._dealt_anew:
            return np.full(len(streams), shard, np.int64)
        found = distinct(streams)
        dealt = np.array([child_seed(0, "stream", stream) % self._spec.shards for stream in found.values.tolist()], np.int64)
        targets: Ints = dealt[found.which]
        return targets

    def _numbered(self, shard: int, streams: npt.NDArray[np.uint64]) -> Ints:
        """New numbers of environments for (writer, environment) [K], in order of their first rows."""
        known = self._environments[shard]
        found = distinct(streams)
        numbers = np.array([known.setdefault(stream, len(known)) for stream in found.values.tolist()], np.int64)
        numbered: Ints = numbers[found.which]
        return numbered

    def _addressed(self, index: PackedArrays, shard: int, which: Ints | slice, *, keep_keys: bool) -> PackedArrays:
        """Some items of an index with their new addresses."""
        arrays: Arrays = {name: array[which] for name, array in index.arrays.items()}
        arrays["env"] = self._numbered(shard, stream_ids(arrays["writer"], arrays["env"])).astype(np.uint32)
        count = len(arrays["number"])
        arrays["writer"] = np.full(count, self._writer, np.uint32)
        if not keep_keys:
            arrays["key"] = make_keys(shard, self._writer, 0, count)
        facts = dict(index.facts)
        if self._spec.resolved_encoding == "raw":
            facts.pop("stored_bytes", None)  # known without: all chunks have one size
        return PackedArrays(facts=facts, arrays=arrays)

    def _dealt(self) -> list[PackedArrays]:
        """Items of all shards together, dealt out by environment; oldest first by the numbers that they had."""
        names = list(self._indices[0].arrays)
        together = {name: np.concatenate([index.arrays[name] for index in self._indices]) for name in names}
        order = np.argsort(together["number"], kind="stable")
        together = {name: array[order] for name, array in together.items()}
        together["number"] = np.arange(len(order), dtype=together["number"].dtype)
        targets = self._targets(stream_ids(together["writer"], together["env"]), 0)
        totals = {name: sum(int(index.facts[name]) for index in self._indices) for name in ("inserted", "sampled")}
        dealt = []
        for shard in range(self._spec.shards):
            which = np.flatnonzero(targets == shard)
            facts = {**self._indices[0].facts, "shard": shard, "next_number": len(order)}
            share = len(which) / max(1, len(order))
            facts |= {name: round(total * share) for name, total in totals.items()}
            facts["stored_bytes"] = round(self._stored_bytes * share)
            facts["counters"] = dict.fromkeys(facts["counters"], 0)
            if shard == 0:
                for index in self._indices:
                    for name, count in index.facts["counters"].items():
                        facts["counters"][name] = facts["counters"].get(name, 0) + count
            facts["max_priority"] = max(float(index.facts["max_priority"]) for index in self._indices)
            facts["newest_version"] = max(int(index.facts["newest_version"]) for index in self._indices)
            dealt.append(self._addressed(PackedArrays(facts=facts, arrays=together), shard, which, keep_keys=False))
        return dealt
