"""Draws batches of items from all shards of a table: a few requests out, at once, and their replies in.

    strict    masses of all shards ─▶ split ─▶ draws, all at the time of the call       one shard: a single round trip
    relaxed   masses of the last replies ─▶ split ─▶ draws, several batches ahead       hides the round trip, a few batches old

A shard that is away holds up the batch until the deadline: leaving it out would change the distribution. Parts that came are kept
for the next call, so that nothing which was drawn is lost when a deadline passes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rollstream.clock import Clock, Deadline
from rollstream.errors import DeadlineExceeded, StoreError, TableError
from rollstream.replay.item_keys import Keys, shard_of
from rollstream.replay.samples import SampleRequest, decode_reply, encode_request
from rollstream.replay.shard_draws import BatchPlan, DrawnItems, Floats, Standing
from rollstream.replay.shard_link import Link

__all__ = ["DrawSettings", "Draws"]

LONGEST_DEADLINE_S = 30 * 86_400.0
SLICE_S = 0.25
"""How long draws from several shards wait before a batch of which nothing came is split anew: by then masses may be others."""
MASSES_FRESH_S = 1.0
"""Age up to which masses of earlier replies split a relaxed batch. After longer silence a shard is asked how it stands."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.01, 0.25
"""Between two looks at shards that all have nothing to draw."""
NOTHING = np.zeros(0, np.uint32)
ONE_SHARD = np.ones(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawSettings:
    """How batches are asked for.

    Attributes:
        ahead_batches: more batches asked for than needed; 0: none.
        relaxed: whether masses of the last replies will do.
        count_when_consumed: whether the limiter counts what `Draws.used` reports rather than what was drawn.
        wants_min_probability: whether replies tell it.
    """

    ahead_batches: int = 0
    relaxed: bool = False
    count_when_consumed: bool = False
    wants_min_probability: bool = False


class Draws:
    """Batches of one table, for one thread.

    Args:
        links: to the shards, for the exclusive use of this object.
        batch_problem: why a batch of a size can never be served, or nothing (`TableSpec.batch_problem`); shards see parts only.
        generator: of splits and orders.

    Attributes:
        learner_version: newest weights that the client knows; goes with each request.
    """

    def __init__(
        self,
        links: Sequence[Link],
        *,
        table_id: str,
        settings: DrawSettings,
        batch_problem: Callable[[int], str],
        generator: np.random.Generator,
        clock: Clock,
    ) -> None:
        self.learner_version = 0
        self._links = links
        self._table_id = table_id
        self._path = f"/v1/tables/{table_id}/samples"
        self._settings = settings
        self._batch_problem = batch_problem
        self._clock = clock
        self._plan = BatchPlan(len(links), generator=generator)
        self._asked = [False] * len(links)
        self._used = [0] * len(links)

    @property
    def ready_items(self) -> int:
        """Size of the batch that lies ready; 0 when there is none."""
        return self._plan.batch_items if self._plan.ready else 0

    def next(self, batch_items: int, *, deadline: Deadline) -> DrawnItems:
        """The next batch.

        Raises:
            DeadlineExceeded: the limiter did not allow it in time, or a shard was away; names which.
            TableError: the shards can never serve it.
        """
        plan, ahead = self._plan, self._settings.ahead_batches
        if self._settings.count_when_consumed and any(self._asked):
            self._collect(0.0)  # asked before the last batch, so it is there; then what was used can be told
        if plan.batch_items != batch_items:
            self._begin_size(batch_items)
        while not plan.ready:
            if any(self._asked):
                self._collect(deadline.remaining_s())  # what was asked ahead
            else:
                self._ask_now(batch_items, deadline)
        if ahead and not any(self._asked):
            if len(plan) <= (ahead + 1) // 2:
                self._ask_ahead(batch_items)
            else:
                self._report_used()
        return plan.take()

    def used(self, keys: Keys) -> None:
        """Items of these keys were handed to the user; where that is what counts, the shards hear of it with the next batch."""
        if not self._settings.count_when_consumed:
            return
        if len(self._links) == 1:
            self._used[0] += len(keys)
            return
        for shard, count in enumerate(np.bincount(shard_of(keys), minlength=len(self._links)).tolist()):
            self._used[shard] += count

    def stand(self, *, deadline: Deadline) -> list[Standing]:
        """How all shards stand now."""
        if any(self._asked):
            self._collect(deadline.remaining_s())
        for shard in range(len(self._links)):
            self._send(shard, NOTHING, deadline_s=deadline.remaining_s())
        for shard in range(len(self._links)):
            self._receive(shard, deadline.remaining_s())
        return [standing for standing in self._plan.standings if standing is not None]

    def forget(self) -> None:
        """Drop what was asked ahead and not used."""
        self._plan.clear()
        for shard, asked in enumerate(self._asked):
            if asked:
                self._links[shard].close()
                self._asked[shard] = False

    def close(self, *, deadline_s: float) -> None:
        """Report what was used, where that counts, and close the connections."""
        if self._settings.count_when_consumed and any(self._asked):
            self._collect(0.0)
        self.forget()
        if any(self._used):
            try:
                self.stand(deadline=Deadline(self._clock, after_s=deadline_s))
            except (DeadlineExceeded, StoreError):
                pass  # a shard that is away forgets what it gave anyway
        for link in self._links:
            link.close()

    # --- inside ----------------------------------------------------------------------------------------------------------

    def _begin_size(self, batch_items: int) -> None:
        """Batches of another size than those that are planned, or the first for a while."""
        if len(self._plan):
            self.forget()
        problem = self._batch_problem(batch_items) if len(self._links) > 1 else ""
        if problem:
            raise TableError(f"table {self._table_id} can never serve this batch: {problem}")

    def _ask_now(self, batch_items: int, deadline: Deadline) -> None:
        """Ask for what is owed of the first batch, planning it first, and wait for the answers."""
        plan = self._plan
        if not len(plan):
            masses = self._masses(batch_items, deadline)
            plan.add(batch_items, batches=1 + self._settings.ahead_batches, masses=masses)
        several = len(self._links) > 1
        wait_s = min(deadline.remaining_s(), SLICE_S) if several else deadline.remaining_s()
        owing = plan.owing()
        self._send_owed(deadline_s=wait_s)
        problems = self._collect(wait_s, of=owing)
        if plan.ready:
            return
        if not several and problems:
            raise problems[0]
        problems += self._collect(0.0)  # of shards that owe parts of later batches only
        nothing_came = plan.untouched
        if nothing_came:  # the next attempt, or call, splits anew
            plan.clear()
            plan.standings = [None] * len(self._links)
        if deadline.passed():
            raise DeadlineExceeded(
                f"table {self._table_id}: a batch of {batch_items} items did not come within {deadline.waited_s():.1f} s; "
                + "; ".join(str(problem) for problem in problems)
            )
        if nothing_came:
            return
        self.stand(deadline=deadline)
        for shard in plan.owing():
            standing = plan.standings[shard]
            if standing is not None and standing.mass <= 0.0:
                plan.move(shard)

    def _ask_ahead(self, batch_items: int) -> None:
        plan = self._plan
        if len(self._links) > 1 and not plan.masses().sum() > 0.0:
            return
        masses = plan.masses() if len(self._links) > 1 else ONE_SHARD
        plan.add(batch_items, batches=self._settings.ahead_batches, masses=masses)
        self._send_owed(deadline_s=0.0)
        self._ask_the_silent()

    def _ask_the_silent(self) -> None:
        """Let shards of which nothing is wanted say how they stand: one that had no items then may have some now."""
        now_s = self._clock.monotonic_s()
        for shard, standing in enumerate(self._plan.standings):
            if not self._asked[shard] and (standing is None or now_s - standing.at_s > MASSES_FRESH_S):
                self._send(shard, NOTHING, deadline_s=0.0)

    def _report_used(self) -> None:
        """Let the shards know what was used without asking for more: writers may be waiting for it."""
        for shard, used in enumerate(self._used):
            if used:
                self._send(shard, NOTHING, deadline_s=0.0)

    def _masses(self, batch_items: int, deadline: Deadline) -> Floats:
        """What to split by; waits until some shard has something to draw."""
        plan = self._plan
        if len(self._links) == 1:
            return ONE_SHARD
        if self._settings.relaxed:
            oldest_s = plan.oldest_standing_s()
            if oldest_s is not None and self._clock.monotonic_s() - oldest_s < MASSES_FRESH_S and plan.masses().sum() > 0.0:
                return plan.masses()
        pause_s = FIRST_PAUSE_S
        while True:
            self.stand(deadline=deadline)
            masses = plan.masses()
            if masses.sum() > 0.0:
                return masses
            if deadline.passed():
                raise DeadlineExceeded(
                    f"table {self._table_id}: a batch of {batch_items} items did not come within {deadline.waited_s():.1f} s; "
                    f"none of its {len(self._links)} shards holds an item that can be drawn"
                )
            self._clock.sleep(min(pause_s, max(0.001, deadline.remaining_s())))
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    def _send_owed(self, *, deadline_s: float) -> None:
        for shard in range(len(self._links)):
            owed = self._plan.owed_by(shard)
            if len(owed):
                self._send(shard, owed, deadline_s=deadline_s)

    def _send(self, shard: int, counts: npt.NDArray[np.uint32], *, deadline_s: float) -> None:
        request = SampleRequest(
            counts=counts,
            deadline_ms=int(min(deadline_s, LONGEST_DEADLINE_S) * 1000),
            count_when_consumed=self._settings.count_when_consumed,
            consumed=self._used[shard],
            learner_version=self.learner_version,
            wants_min_probability=self._settings.wants_min_probability,
        )
        self._asked[shard] = True
        self._used[shard] = 0
        self._links[shard].send("POST", self._path, encode_request(request))

    def _collect(self, wait_s: float, *, of: Sequence[int] | None = None) -> list[DeadlineExceeded]:
        """Take in the replies that are outstanding (`of` these shards); returns what shards said that had none in time."""
        problems = []
        for shard in range(len(self._links)) if of is None else of:
            if self._asked[shard]:
                try:
                    self._receive(shard, wait_s)
                except DeadlineExceeded as problem:
                    problems.append(problem)
        return problems

    def _receive(self, shard: int, wait_s: float) -> None:
        self._asked[shard] = False
        body = self._links[shard].receive(deadline_s=wait_s)
        self._plan.deliver(shard, decode_reply(body), at_s=self._clock.monotonic_s())
