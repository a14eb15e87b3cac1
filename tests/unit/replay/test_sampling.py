"""Drawing from several shards: which requests go out, what is kept when a deadline passes, what counts as used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rollstream.clock import Deadline, FakeClock
from rollstream.errors import DeadlineExceeded, TableError
from rollstream.replay.item_keys import make_keys, shard_of
from rollstream.replay.limiter_spec import MinSize, SampleToInsertRatio
from rollstream.replay.log import DeleteEntry, InsertEntry, encode_delete, encode_insert
from rollstream.replay.samples import SampleReply, SampleRequest, decode_request, encode_reply
from rollstream.replay.sampling import Draws, DrawSettings
from rollstream.replay.selector_spec import Prioritized
from rollstream.replay.shard import TableShard
from rollstream.replay.spec import TableSpec
from rollstream.store import Address, Store

NOWHERE = Address(transport="unix", path="nowhere.sock")


class IndexLink:
    """A shard's index, asked without a network; notes the requests. Waiting for it moves the clock."""

    def __init__(self, spec: TableSpec, *, shard: int, clock: FakeClock) -> None:
        self.requests: list[SampleRequest] = []
        self.away = False
        self.closed = 0
        self.index = TableShard(
            Store(NOWHERE, clock=clock), table_id="run-1.replay", shard=shard, spec=spec, guard=lambda what, fill: []
        )
        self._clock = clock
        self._shard = shard
        self._rows = 0
        self._reply: SampleReply | None = None

    def insert(self, items: int) -> None:
        first, self._rows = self._rows, self._rows + items
        entry = InsertEntry(
            writer=1 + self._shard,
            sequence=first + 1,
            keep=np.array([self._rows], np.uint64),
            end=np.array([self._rows], np.uint64),
            start=np.arange(first, self._rows, dtype=np.uint64),
            env=np.zeros(items, np.uint32),
            length=np.ones(items, np.uint32),
            version=np.zeros(items, np.uint32),
            episode_env=np.zeros(0, np.uint32),
            episode_start=np.zeros(0, np.uint64),
            first_ordinal=first,
        )
        self.index.take([(b"%d-1" % (first + 1), {b"i": encode_insert(entry)})])
        assert self.index.admit() == items

    def delete_all(self) -> None:
        item_keys = make_keys(self._shard, 1 + self._shard, 0, self._rows)
        self.index.take([(b"99999-1", {b"d": encode_delete(DeleteEntry(keys=item_keys))})])

    def send(self, method: str, path: str, body: bytes = b"", *, content_type: str = "") -> None:
        assert (method, path) == ("POST", "/v1/tables/run-1.replay/samples")
        request = decode_request(body)
        self.requests.append(request)
        self._reply = None if self.away else self.index.sample(self.index.table, request)

    def receive(self, *, deadline_s: float) -> bytes:
        request, reply = self.requests[-1], self._reply
        if self.away:
            self._clock.advance(deadline_s)
            raise DeadlineExceeded(f"replay shard {self._shard} did not serve")
        if reply is None:
            self._clock.advance(request.deadline_ms / 1000)
            raise DeadlineExceeded(f"shard {self._shard} waits: {self.index.table.sample_waits_for(int(request.counts[0]))}")
        return encode_reply(reply)

    def request(self, method: str, path: str, body: bytes = b"", *, deadline_s: float) -> bytes:
        raise AssertionError("draws send and receive")

    request_json: Any = request

    def close(self) -> None:
        self.closed += 1


class Sharded:
    """Draws and their shards."""

    def __init__(self, shards: int, *, spec: TableSpec, settings: DrawSettings) -> None:
        self.clock = FakeClock()
        self.links = [IndexLink(spec, shard=shard, clock=self.clock) for shard in range(shards)]
        self.draws = Draws(
            self.links,
            table_id="run-1.replay",
            settings=settings,
            batch_problem=spec.batch_problem,
            generator=np.random.default_rng(0),
            clock=self.clock,
        )

    def next(self, batch_items: int, *, deadline_s: float = 10.0) -> Any:
        return self.draws.next(batch_items, deadline=Deadline(self.clock, after_s=deadline_s)).items

    def asked(self) -> list[list[list[int]]]:
        """Counts of the requests that each shard got since the last look."""
        counts = [[request.counts.tolist() for request in link.requests] for link in self.links]
        for link in self.links:
            link.requests.clear()
        return counts


@pytest.fixture
def make() -> Callable[..., Sharded]:
    def sharded(shards: int = 3, *, settings: DrawSettings | None = None, items: int = 10, **changes: Any) -> Sharded:
        rows = [["observation", "<f4", [4]]]
        spec = TableSpec(**{"name": "replay", "max_items": 1000, "rows": rows, "shards": shards, **changes})
        made = Sharded(shards, spec=spec, settings=settings or DrawSettings())
        for link in made.links:
            if items:
                link.insert(items)
        return made

    return sharded


def test_one_shard_is_asked_once_for_a_batch(make: Any) -> None:
    one = make(1)
    assert len(one.next(16)) == 16
    assert one.asked() == [[[16]]]


def test_several_shards_are_asked_how_they_stand_and_then_for_their_parts(make: Any) -> None:
    three = make(3)
    items = three.next(60)
    counts = np.bincount(shard_of(items.keys), minlength=3).tolist()
    assert three.asked() == [[[], [count]] for count in counts]


def test_relaxed_batches_are_split_by_the_last_replies(make: Any) -> None:
    three = make(3, settings=DrawSettings(relaxed=True))
    three.next(60)
    three.asked()
    three.next(60)
    assert [len(requests) for requests in three.asked()] == [1, 1, 1]
    three.clock.advance(2.0)
    three.next(60)
    assert [requests[0] for requests in three.asked()] == [[], [], []]  # too old to go by


def test_batches_ahead_cost_a_request_now_and_then(make: Any) -> None:
    three = make(3, settings=DrawSettings(relaxed=True, ahead_batches=4))
    for _ in range(40):
        assert len(three.next(30)) == 30
    assert all(len(requests) < 20 for requests in three.asked())


def test_a_shard_that_is_away_holds_up_the_batch_and_is_named(make: Any) -> None:
    three = make(3)
    three.next(30)
    three.links[1].away = True
    with pytest.raises(DeadlineExceeded, match="replay shard 1 did not serve"):
        three.next(30, deadline_s=1.0)
    three.links[1].away = False
    assert len(three.next(30)) == 30
    assert sum(link.index.table.limiter.sampled for link in three.links) == 60


def test_parts_are_kept_over_a_deadline_and_drawn_only_once(make: Any) -> None:
    limiter = SampleToInsertRatio(samples_per_insert=1.0, min_items=5, tolerance_items=40.0)
    two = make(2, limiter=limiter, items=20)
    two.links[1].index.table.limiter.sampled = 1000  # the limiter of this shard allows nothing
    with pytest.raises(DeadlineExceeded, match="a batch of 20 items did not come within 1.0 s; shard 1 waits"):
        two.next(20, deadline_s=1.0)
    drawn = two.links[0].index.table.limiter.sampled
    assert 0 < drawn < 20
    two.links[1].index.table.limiter.sampled = 0
    items = two.next(20)
    assert len(items) == 20
    assert two.links[0].index.table.limiter.sampled == drawn


def test_a_batch_of_which_nothing_came_is_split_anew(make: Any) -> None:
    two = make(2, items=0, limiter=MinSize(min_items=4))
    two.links[0].insert(3)
    with pytest.raises(DeadlineExceeded, match="did not come within .*shard 0 waits"):
        two.next(40, deadline_s=1.0)
    for link in two.links:
        link.insert(50)
    shares = np.bincount(shard_of(two.next(40).keys), minlength=2)
    assert (shares > 0).all()


def test_what_an_emptied_shard_owes_comes_from_the_others(make: Any) -> None:
    limiter = SampleToInsertRatio(samples_per_insert=1.0, min_items=1, tolerance_items=60.0)
    two = make(2, limiter=limiter, items=20)
    two.links[1].index.table.limiter.sampled = 1000
    with pytest.raises(DeadlineExceeded, match="shard 1 waits"):
        two.next(20, deadline_s=1.0)
    two.links[1].delete_all()
    assert set(shard_of(two.next(20).keys).tolist()) == {0}


def test_only_what_was_used_counts(make: Any) -> None:
    two = make(2, settings=DrawSettings(relaxed=True, ahead_batches=4, count_when_consumed=True))
    used = 0
    for _ in range(3):
        items = two.next(10)
        two.draws.used(items.keys)
        used += 10
    assert sum(link.index.table.limiter.sampled for link in two.links) < 30
    two.draws.close(deadline_s=1.0)
    assert sum(link.index.table.limiter.sampled for link in two.links) == used


def test_what_was_used_is_told_with_the_next_batch_though_more_lie_ahead(make: Any) -> None:
    one = make(1, settings=DrawSettings(relaxed=True, ahead_batches=8, count_when_consumed=True))
    limiter = one.links[0].index.table.limiter
    for batch in range(12):
        items = one.next(10)
        assert limiter.sampled >= 10 * (batch - 1)
        assert limiter.sampled <= 10 * batch
        one.draws.used(items.keys)


def test_another_size_forgets_what_was_asked_ahead(make: Any) -> None:
    one = make(1, settings=DrawSettings(relaxed=True, ahead_batches=4))
    one.next(10)
    assert len(one.next(7)) == 7
    assert one.draws.ready_items == 7
    one.draws.forget()
    assert one.draws.ready_items == 0


def test_the_learners_version_goes_with_each_request(make: Any) -> None:
    two = make(2, sampler=Prioritized())
    two.draws.learner_version = 17
    assert two.draws.next(8, deadline=Deadline(two.clock, after_s=1.0)).newest_version == 17
    assert {request.learner_version for link in two.links for request in link.requests} == {17}


def test_a_batch_that_the_whole_table_can_never_serve_is_refused(make: Any) -> None:
    three = make(3, limiter=SampleToInsertRatio(samples_per_insert=1.0, min_items=10, tolerance_items=100.0))
    with pytest.raises(TableError, match=r"can never serve this batch: 2 \* tolerance_items >= batch_items"):
        three.next(256)
    assert three.asked() == [[], [], []]
