"""Items by their keys: found, given other priorities, removed. A key tells its shard, so each request goes where the item is.

    find               POST .../items/find to the shards        answers now
    update, delete     XADD to the logs of the shards           applied in order with everything else, a few milliseconds later

Entries of the log do not answer. Who wants to know which keys are unknown pays a question to the shards first.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.clock import Clock, Deadline
from rollstream.errors import SchemaMismatch, TableError
from rollstream.replay.item_keys import Keys, shard_of
from rollstream.replay.log import DeleteEntry, UpdateEntry, encode_delete, encode_update
from rollstream.replay.sample import Sample
from rollstream.replay.samples import SampledItems, SampleReply, SampleRequest, decode_items, decode_reply, encode_request
from rollstream.replay.shard_draws import merge_parts
from rollstream.replay.shard_rows import ShardRows
from rollstream.replay.table_shards import TableShards
from rollstream.store import keys

__all__ = ["DeleteResult", "FoundItems", "KeyedItems", "UpdateResult"]

_LOG = logging.getLogger("rollstream.replay")
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateResult:
    """What became of new priorities.

    Attributes:
        sent: how many went to the shards.
        refused: how many did not, because they were NaN, infinite or negative.
        unknown: how many of the keys no shard knew when asked; None when it was not asked.
    """

    sent: int
    refused: int
    unknown: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteResult:
    """How many keys were sent, and how many of them no shard knew when asked; None when it was not asked."""

    sent: int
    unknown: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundItems:
    """The items of some keys that are there, in the order of the keys, which keys [K] are known, and the table's newest version."""

    items: SampledItems
    known: npt.NDArray[np.bool_]
    newest_version: int


class KeyedItems:
    """Keys of one table. Thread-safe."""

    def __init__(self, shards: TableShards, *, clock: Clock) -> None:
        self.refused = 0
        self._shards = shards
        self._clock = clock
        self._logs: list[str] = []

    def find(self, item_keys: npt.NDArray[Any], *, deadline_s: float) -> FoundItems:
        """The items of `item_keys` [K] that are there, with the probability that one draw from the table gives each now."""
        wanted = _keys(item_keys, self._shards.table_id)
        deadline = Deadline(self._clock, after_s=deadline_s)
        links = self._shards.links(deadline_s=deadline_s)
        replies = [
            decode_reply(link.request("POST", f"{self._shards.path}/samples", STANDING, deadline_s=deadline.remaining_s()))
            for link in links
        ]
        known = np.zeros(len(wanted), np.bool_)
        parts: list[SampledItems] = []
        places: list[Ints] = []
        shares: list[float] = []
        total = sum(reply.mass for reply in replies)
        for shard, where in _by_shard(wanted, len(links)):
            asked = wanted[where]
            body = links[shard].request(
                "POST", f"{self._shards.path}/items/find", asked.tobytes(), deadline_s=deadline.remaining_s()
            )
            if len(body) < len(asked):
                raise SchemaMismatch(f"shard {shard} answered {len(body)} bytes where {len(asked)} keys were asked for")
            there = np.frombuffer(body, np.bool_, count=len(asked))
            parts.append(decode_items(body, count=int(there.sum()), offset=len(asked), table_items=0))
            places.append(np.arange(len(wanted))[where][there])
            shares.append(replies[shard].mass / total if total > 0.0 else 0.0)
            known[where] = there
        return FoundItems(
            items=_in_order(parts, places, shares if len(links) > 1 else [1.0] * len(parts), replies),
            known=known,
            newest_version=max((reply.newest_version for reply in replies), default=0),
        )

    def sample(
        self, item_keys: npt.NDArray[Any], rows: ShardRows, *, missing_ok: bool, learner_version: int, deadline_s: float
    ) -> Sample:
        """See `TableClient.get`."""
        deadline = Deadline(self._clock, after_s=deadline_s)
        found = self.find(item_keys, deadline_s=deadline_s)
        fetched = rows.read(found.items, deadline=deadline)
        gone = fetched.missing
        unknown = np.concatenate([item_keys[~found.known], found.items.keys[gone].astype(item_keys.dtype)])
        if len(unknown) and not missing_ok:
            first = ", ".join(map(str, unknown[:5].tolist())) + (", ..." if len(unknown) > 5 else "")
            raise TableError(
                f"table {self._shards.table_id} does not hold {len(unknown)} of {len(item_keys)} keys: {first}; their items were "
                "removed, or never there. Pass missing_ok=True to get the others"
            )
        sample = Sample.of(found.items, fetched, newest_version=max(found.newest_version, learner_version))
        return sample.part(np.flatnonzero(~gone)) if gone.any() else sample

    def known(self, item_keys: npt.NDArray[Any], *, deadline_s: float) -> npt.NDArray[np.bool_]:
        """Which of the keys [K] belong to items that are there now."""
        return self.find(item_keys, deadline_s=deadline_s).known

    def update(
        self,
        item_keys: npt.NDArray[Any],
        priorities: npt.NDArray[Any],
        *,
        learner_version: int,
        report_unknown: bool,
        deadline_s: float,
    ) -> UpdateResult:
        """See `TableClient.update_priorities`."""
        if item_keys.shape != priorities.shape or item_keys.ndim != 1:
            raise TableError(
                f"table {self._shards.table_id}: update_priorities needs keys [K] and priorities [K], got {item_keys.shape} and "
                f"{priorities.shape}"
            )
        if not len(item_keys):
            return UpdateResult(sent=0, refused=0, unknown=0 if report_unknown else None)
        wanted = _keys(item_keys, self._shards.table_id)
        with np.errstate(over="ignore"):
            narrow = priorities.astype(np.float32)
        good = np.isfinite(narrow) & (narrow >= 0.0)
        refused = len(good) - int(np.count_nonzero(good))
        if refused:
            self._report_refused(wanted, priorities, good, learner_version)
        deadline = Deadline(self._clock, after_s=deadline_s)
        unknown = self._unknown(wanted, deadline) if report_unknown else None
        entries, sent = {}, 0
        for shard, where in _by_shard(wanted, self._shard_count(deadline)):
            chosen, priority = wanted[where], narrow[where]
            asked = len(chosen)
            if refused:
                chosen, priority = chosen[good[where]], priority[good[where]]
            entry = UpdateEntry(keys=chosen, priority=priority, refused=asked - len(chosen))
            entries[shard] = {b"u": encode_update(entry)}
            sent += len(chosen)
        self._append("return priorities", entries, deadline)
        return UpdateResult(sent=sent, refused=refused, unknown=unknown)

    def delete(
        self, item_keys: npt.NDArray[Any], *, report_unknown: bool, deadline_s: float, missing: bool = False
    ) -> DeleteResult:
        """See `TableClient.delete_items`; `missing`: because their rows are gone."""
        wanted = _keys(item_keys, self._shards.table_id)
        deadline = Deadline(self._clock, after_s=deadline_s)
        unknown = self._unknown(wanted, deadline) if report_unknown else None
        chosen = {shard: wanted[where] for shard, where in _by_shard(wanted, self._shard_count(deadline))}
        entries = {shard: {b"d": encode_delete(DeleteEntry(keys=each, missing=missing))} for shard, each in chosen.items()}
        self._append("delete items", entries, deadline)
        return DeleteResult(sent=sum(map(len, chosen.values())), unknown=unknown)

    # --- inside ----------------------------------------------------------------------------------------------------------

    def _shard_count(self, deadline: Deadline) -> int:
        spec = self._shards.spec(deadline_s=deadline.remaining_s())
        if len(self._logs) != spec.shards:
            rows_id = self._shards.rows_id(deadline_s=deadline.remaining_s())
            self._logs = [keys.table_log(rows_id, shard) for shard in range(spec.shards)]
        return spec.shards

    def _unknown(self, wanted: Keys, deadline: Deadline) -> int:
        return len(wanted) - int(self.known(wanted, deadline_s=deadline.remaining_s()).sum())

    def _append(self, what: str, entries: dict[int, dict[Any, Any]], deadline: Deadline) -> None:
        logs = self._logs
        if len(entries) == 1:
            [(shard, fields)] = entries.items()
            log = logs[shard]
            self._shards.store.run(what, lambda client: client.xadd(log, fields), deadline_s=deadline.remaining_s())
            return

        def operation(client: Any) -> None:
            with client.pipeline(transaction=False) as pipeline:
                for shard, fields in entries.items():
                    pipeline.xadd(logs[shard], fields)
                pipeline.execute()

        if entries:
            self._shards.store.run(what, operation, deadline_s=deadline.remaining_s())

    def _report_refused(self, item_keys: Keys, priorities: npt.NDArray[Any], good: npt.NDArray[np.bool_], version: int) -> None:
        refused = ~good
        self.refused += int(refused.sum())
        _LOG.log(
            logging.ERROR if refused.all() else logging.WARNING,
            "table %s: refused %d of %d priorities (first: key %d, value %s; learner version %d): they must be finite and >= 0",
            self._shards.table_id,
            int(refused.sum()),
            len(good),
            int(item_keys[refused][0]),
            priorities[refused][0],
            version,
        )


STANDING = encode_request(SampleRequest(counts=np.zeros(0, np.uint32), deadline_ms=0))
"""Asks a shard how it stands, and for nothing else."""


def _keys(item_keys: npt.NDArray[Any], table_id: str) -> Keys:
    if item_keys.ndim != 1 or item_keys.dtype.kind not in "ui":
        raise TableError(
            f"table {table_id}: keys are whole numbers [K] as samples and writers give them (u8), got "
            f"{item_keys.dtype}{list(item_keys.shape)}"
        )
    return np.ascontiguousarray(item_keys, np.uint64)


def _by_shard(item_keys: Keys, shards: int) -> Iterator[tuple[int, Ints | slice]]:
    """Which keys belong to each shard that has any; those of shards which do not exist belong to none."""
    if shards == 1:
        if len(item_keys):
            yield 0, slice(None)
        return
    of = shard_of(item_keys)
    for shard in range(shards):
        where = np.flatnonzero(of == shard)
        if len(where):
            yield shard, where


def _in_order(parts: list[SampledItems], places: list[Ints], shares: list[float], replies: list[SampleReply]) -> SampledItems:
    """Items of all shards in the order of their keys."""
    table_items = sum(reply.table_items for reply in replies)
    if not parts:
        return SampledItems.nothing(table_items=table_items)
    rank = np.concatenate(places).argsort(kind="stable").argsort(kind="stable")
    return merge_parts(parts, places=rank, shares=shares, table_items=table_items)
