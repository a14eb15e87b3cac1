"""One table in a running shard: serves samplers, lets those wait whom the limiter does not allow yet, says who waits for whom.

Lives in the event loop's thread; nothing here waits except a sampler for its items.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace

from rollstream.clock import Clock
from rollstream.errors import DeadlineExceeded, TableError
from rollstream.metrics import Waits
from rollstream.replay.samples import SampleReply, SampleRequest
from rollstream.replay.shard import TableShard
from rollstream.replay.table import Table

__all__ = ["ServedTable", "WaitingSampler"]


@dataclass(slots=True)
class WaitingSampler:
    """A request for samples that the limiter does not allow yet."""

    request: SampleRequest
    began_s: float
    deadline_s: float
    result: asyncio.Future[SampleReply]

    @property
    def batch_items(self) -> int:
        """Items of the first batch: without them there is no answer."""
        return int(self.request.counts[0])


class ServedTable:
    """A `Table` and those who want samples of it.

    Args:
        changed: called when samples were drawn or counted: the numbers that others read have changed.
    """

    def __init__(self, shard: TableShard, *, table_id: str, clock: Clock, waits: Waits, changed: Callable[[], None]) -> None:
        self.shard = shard
        self.table_id = table_id
        self.samplers: deque[WaitingSampler] = deque()
        self._clock = clock
        self._waits = waits
        self._changed = changed
        self._possible: set[int] = set()
        self._sampled = False

    @property
    def table(self) -> Table:
        """The index."""
        return self.shard.tables[self.table_id]

    def sample_now(self, request: SampleRequest) -> SampleReply | None:
        """As many whole batches as the limiter allows now; None when not even the first.

        Raises:
            TableError: a batch of this size could wait for ever.
        """
        if len(request.counts):
            self._require_possible(int(request.counts.max()))
            if self.samplers:
                self.table.limiter.consume(request.consumed)
                return None
        reply = self.shard.sample(self.table, request)
        self._sampled = True
        if request.consumed or reply is not None:
            self._changed()
        return reply

    async def sample_later(self, request: SampleRequest) -> SampleReply:
        """Wait for what `sample_now` did not give.

        Raises:
            DeadlineExceeded: the limiter did not allow it in time.
        """
        deadline_s = request.deadline_ms / 1000
        began_s = self._clock.monotonic_s()
        result: asyncio.Future[SampleReply] = asyncio.get_running_loop().create_future()
        sampler = WaitingSampler(replace(request, consumed=0), began_s, deadline_s, result)  # what was consumed is noted
        self.samplers.append(sampler)
        try:
            with self._waits.waiting(who=f"samplers of table {self.table_id}", for_whom="writers (limiter)"):
                async with asyncio.timeout(deadline_s):
                    return await result
        except TimeoutError:
            reason = self.table.sample_waits_for(sampler.batch_items) or "waiting behind other samplers"
            raise DeadlineExceeded(
                f"table {self.table_id} shard {self.shard.shard}: a batch of {sampler.batch_items} items did not come within "
                f"{self._clock.monotonic_s() - began_s:.1f} s; {reason} ({self.state()})"
            ) from None
        finally:
            if sampler in self.samplers:
                self.samplers.remove(sampler)

    def settle(self) -> None:
        """Let the sampler put itself in order now: once between two requests, so that inserts alone cost nothing."""
        if self._sampled:
            self._sampled = False
            _ = self.table.sampler.mass

    def serve_waiting(self) -> None:
        """Give samplers that wait what they want, in order, as far as the limiter allows."""
        while self.samplers:
            sampler = self.samplers[0]
            if not sampler.result.done():
                reply = self.shard.sample(self.table, sampler.request)
                if reply is None:
                    return
                sampler.result.set_result(reply)
                self._changed()
            self.samplers.popleft()

    def close(self, error: Exception) -> None:
        """Tell those who wait that there is no use in it."""
        for sampler in self.samplers:
            if not sampler.result.done():
                sampler.result.set_exception(error)
        self.samplers.clear()

    def forget_possible(self) -> None:
        """The spec has changed: which batches can be served is asked again."""
        self._possible.clear()

    def waited_s(self, sampler: WaitingSampler) -> float:
        """Seconds that a sampler has been waiting."""
        return self._clock.monotonic_s() - sampler.began_s

    def state(self) -> str:
        """The numbers that decide, for people."""
        limiter = self.table.limiter
        return f"items {self.table.size}, inserted {limiter.inserted}, sampled {limiter.sampled}"

    # --- inside ----------------------------------------------------------------------------------------------------------

    def _require_possible(self, batch_items: int) -> None:
        if batch_items in self._possible:
            return
        if batch_items < 1:
            raise TableError(f"table {self.table_id}: the items of a batch must be >= 1, got {batch_items}")
        problem = self.table.spec.batch_problem(batch_items)
        if problem:
            raise TableError(f"table {self.table_id} can never serve this batch: {problem}")
        if len(self._possible) > 1024:
            self._possible.clear()
        self._possible.add(batch_items)
