"""One table in a running shard: admits what it read, wakes samplers that wait, remembers what has to be written to Redis.

Lives in the event loop's thread; nothing here waits except a sampler for its items.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from contextlib import ExitStack
from dataclasses import dataclass

from rollstream.clock import Clock
from rollstream.errors import DeadlineExceeded, TableError
from rollstream.metrics import Waits
from rollstream.replay.chunks import ChunkAddresses
from rollstream.replay.samples import SampledItems
from rollstream.replay.shard import LogEntries, TableShard

__all__ = ["ServedTable"]

_LOG = logging.getLogger("rollstream.replay")
GRANT_AGAIN_WITHIN_S = 60.0
"""Writers heard of within this time get their credit again now and then, in case Redis lost it."""
FORGET_WRITER_AFTER_S = 1800.0
"""A writer silent for this long is gone; its last few rows are let go. Longer than any pause of an experiment's actor."""
BOTH_BLOCKED_AFTER_S = 5.0
"""Writers and samplers both waiting for this long is a fault, and is logged as one."""


@dataclass(slots=True)
class _Sampler:
    batches: int
    batch_items: int
    result: asyncio.Future[SampledItems]


class ServedTable:
    """A `TableShard` and those who wait for it."""

    def __init__(self, shard: TableShard, *, clock: Clock, waits: Waits) -> None:
        self.shard = shard
        self.samples_dirty = False
        self.writers_dirty = False
        self._clock = clock
        self._waits = waits
        self._samplers: deque[_Sampler] = deque()
        self._heard_s: dict[int, float] = {}
        self._fresh_garbage: list[ChunkAddresses] = []
        self._old_garbage: list[ChunkAddresses] = []
        self._writers_wait = ExitStack()
        self._writers_waiting = False
        self._both_blocked_since_s: float | None = None
        self._both_blocked_logged = False

    @property
    def table_id(self) -> str:
        return self.shard.table_id

    # --- inserts ---------------------------------------------------------------------------------------------------------

    def take(self, entries: LogEntries) -> None:
        """Take up entries of the log."""
        self.shard.take(entries)

    def advance(self) -> bool:
        """Admit what may be admitted and serve samplers with it; True when there is more to admit at once."""
        inserted = self.shard.admit()
        for writer in self.shard.newly_admitted_writers():
            self._heard_s[writer] = self._clock.monotonic_s()
            self.writers_dirty = True
        self._serve_samplers()
        garbage = self.shard.table.take_garbage()
        if len(garbage):
            self._fresh_garbage.append(garbage)
        self._record_waiting_writers()
        return inserted > 0 and self.shard.waiting_entries > 0

    def _record_waiting_writers(self) -> None:
        waiting = bool(self.shard.insert_waits_for())
        if waiting and not self._writers_waiting:
            wait = self._waits.waiting(who=f"writers of table {self.table_id}", for_whom="samplers (limiter)")
            self._writers_wait.enter_context(wait)
            self.writers_dirty = True  # the reason is for their eyes
        elif self._writers_waiting and not waiting:
            self._writers_wait.close()
        self._writers_waiting = waiting

    # --- samples ---------------------------------------------------------------------------------------------------------

    async def sample(self, *, batches: int, batch_items: int, deadline_s: float) -> SampledItems:
        """Items of at least one batch.

        Raises:
            TableError: a batch of this size could wait for ever.
            DeadlineExceeded: the limiter did not allow it in time.
        """
        if batches < 1 or batch_items < 1:
            raise TableError(f"table {self.table_id}: batches and batch_items must be >= 1, got {batches} and {batch_items}")
        problem = self.shard.table.spec.batch_problem(batch_items)
        if problem:
            raise TableError(f"table {self.table_id} can never serve this batch: {problem}")
        if not self._samplers:
            items = self.shard.sample(batches=batches, batch_items=batch_items)
            if items is not None:
                self.samples_dirty = True
                return items
        return await self._wait_for_items(batches=batches, batch_items=batch_items, deadline_s=deadline_s)

    async def _wait_for_items(self, *, batches: int, batch_items: int, deadline_s: float) -> SampledItems:
        began_s = self._clock.monotonic_s()
        sampler = _Sampler(batches, batch_items, asyncio.get_running_loop().create_future())
        self._samplers.append(sampler)
        try:
            with self._waits.waiting(who=f"samplers of table {self.table_id}", for_whom="writers (limiter)"):
                async with asyncio.timeout(deadline_s):
                    return await sampler.result
        except TimeoutError:
            reason = self.shard.table.sample_waits_for(batch_items) or "waiting behind other samplers"
            raise DeadlineExceeded(
                f"table {self.table_id} shard {self.shard.shard}: a batch of {batch_items} items did not come within "
                f"{self._clock.monotonic_s() - began_s:.1f} s; {reason} ({self._state()})"
            ) from None
        finally:
            if sampler in self._samplers:
                self._samplers.remove(sampler)

    def _serve_samplers(self) -> None:
        while self._samplers:
            sampler = self._samplers[0]
            if not sampler.result.done():
                items = self.shard.sample(batches=sampler.batches, batch_items=sampler.batch_items)
                if items is None:
                    return
                sampler.result.set_result(items)
                self.samples_dirty = True
            self._samplers.popleft()

    def close(self, error: Exception) -> None:
        """Tell those who wait that there is no use in it."""
        for sampler in self._samplers:
            if not sampler.result.done():
                sampler.result.set_exception(error)
        self._samplers.clear()
        self._writers_wait.close()

    # --- upkeep ----------------------------------------------------------------------------------------------------------

    def take_garbage(self) -> ChunkAddresses:
        """Chunks that nobody needs since the call before the last: a client may still be fetching what it sampled just now."""
        garbage, self._old_garbage = self._old_garbage, self._fresh_garbage
        self._fresh_garbage = []
        return ChunkAddresses.concatenate(garbage)

    @property
    def garbage_chunks(self) -> int:
        return sum(map(len, self._fresh_garbage)) + sum(map(len, self._old_garbage))

    def repeat_credit(self) -> None:
        """Give recent writers their credit once more, and forget those that are gone."""
        now_s = self._clock.monotonic_s()
        recent = [writer for writer, heard_s in self._heard_s.items() if now_s - heard_s < GRANT_AGAIN_WITHIN_S]
        if recent:
            self.shard.grant_again(recent)
            self.writers_dirty = True
        for writer in self.shard.table.streams:
            self._heard_s.setdefault(writer, now_s)
        for writer in [writer for writer, heard_s in self._heard_s.items() if now_s - heard_s > FORGET_WRITER_AFTER_S]:
            self.shard.table.forget_writer(writer)
            del self._heard_s[writer]

    def watch(self) -> None:
        """Writers and samplers must never both wait: if they do, say so, with both reasons."""
        now_s = self._clock.monotonic_s()
        reason = self.shard.insert_waits_for() if self._samplers else ""
        if not reason:
            self._both_blocked_since_s, self._both_blocked_logged = None, False
            return
        since_s = self._both_blocked_since_s = self._both_blocked_since_s or now_s
        if now_s - since_s > BOTH_BLOCKED_AFTER_S and not self._both_blocked_logged:
            self._both_blocked_logged = True
            batch_items = self._samplers[0].batch_items
            _LOG.error(
                "table %s: both sides wait for each other; writers: %s; a sampler of %d items: %s; change the limiter with PATCH",
                self.table_id,
                reason,
                batch_items,
                self.shard.table.sample_waits_for(batch_items),
            )

    def _state(self) -> str:
        table = self.shard.table
        return f"items {table.size}, inserted {table.limiter.inserted}, sampled {table.limiter.sampled}"

    def describe(self) -> dict[str, object]:
        """What the API tells about the table: plain numbers first, then words."""
        shard, table = self.shard, self.shard.table
        limiter, spec, counters = table.limiter, table.spec, table.counters
        predicted = spec.predicted_bytes(self.table_id)
        ratio = limiter.sampled / limiter.inserted if limiter.inserted else 0.0
        return {
            "items": table.size,
            "max_items": spec.max_items,
            "inserted": limiter.inserted,
            "sampled": limiter.sampled,
            "samples_per_insert": ratio,
            "evicted": counters["items_evicted"],
            "exhausted": counters["items_exhausted"],
            "deleted": counters["items_deleted"],
            "missing_rows": counters["items_missing"],
            "priorities_updated": counters["priorities_updated"],
            "priorities_refused": counters["priorities_refused"],
            "keys_stale": counters["keys_stale"],
            "entries_waiting": shard.waiting_entries,
            "entries_repeated": counters["entries_repeated"],
            "entries_refused": counters["entries_refused"] + shard.entries_bad,
            "items_without_rows": counters["items_without_rows"],
            "writers": len(table.streams),
            "samplers_waiting": len(self._samplers),
            "max_priority": table.max_priority,
            "bytes": table.references.held * spec.chunk_memory_bytes(self.table_id),
            "bytes_at_full": predicted,
            "id": self.table_id,
            "shard": shard.shard,
            "writers_wait_for": shard.insert_waits_for(),
            "samplers_wait_for": table.sample_waits_for(1),
            "spec": spec.model_dump(mode="json"),
        }
