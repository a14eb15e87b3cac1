"""Rate limiter: Reverb's formulas, worked by hand around every border, for every kind of limiter.

sample k:  size >= min_items      and  i * spi - s - k >= min_diff
insert k:  size + k <= min_items  or   (i + k) * spi - s <= max_diff
"""

from __future__ import annotations

import math

import pytest

from rollstream.replay.limiter import RateLimiter
from rollstream.replay.limiter_spec import Limiter, MinSize, Queue, RateLimit, SampleToInsertRatio, Stack
from rollstream.replay.position import TableCounts

INF = math.inf
RATIO = SampleToInsertRatio(samples_per_insert=2.0, min_items=10, tolerance_items=6.0)  # min_diff 14, max_diff 26
INTERVAL = SampleToInsertRatio(samples_per_insert=0.5, min_items=4, min_diff=-3.0, max_diff=10.0)
RAW = RateLimit(samples_per_insert=4.0, min_items=2, min_diff=-1.0, max_diff=8.0)
SAMPLERS_FREE = RateLimit(samples_per_insert=3.0, min_items=1, min_diff=-INF, max_diff=9.0)
WRITERS_FREE = RateLimit(samples_per_insert=3.0, min_items=1, min_diff=0.0, max_diff=INF)

SAMPLES: list[tuple[Limiter, int, int, int, int, bool]] = [
    # rule, inserted, sampled, size, count, allowed
    (MinSize(min_items=3), 2, 0, 2, 1, False),  # 2 < 3
    (MinSize(min_items=3), 3, 0, 3, 1, True),
    (MinSize(min_items=3), 3, 99, 3, 10**9, True),  # no ratio
    (MinSize(min_items=3), 9, 0, 2, 1, False),  # items were removed: the size counts
    (RATIO, 9, 0, 9, 1, False),  # 9 < 10
    (RATIO, 10, 0, 10, 6, True),  # 20 - 0 - 6 = 14
    (RATIO, 10, 0, 10, 7, False),  # 13 < 14
    (RATIO, 10, 5, 10, 1, True),  # 20 - 5 - 1 = 14
    (RATIO, 10, 6, 10, 1, False),  # 13
    (RATIO, 100, 180, 10, 6, True),  # 200 - 180 - 6 = 14, though 90 items are gone
    (RATIO, 100, 180, 9, 6, False),  # 9 < 10
    (INTERVAL, 4, 0, 4, 5, True),  # 2 - 0 - 5 = -3
    (INTERVAL, 4, 0, 4, 6, False),  # -4
    (INTERVAL, 5, 0, 5, 5, True),  # 2.5 - 5 = -2.5
    (INTERVAL, 5, 0, 5, 6, False),  # -3.5
    (INTERVAL, 100, 52, 3, 1, False),  # 3 < 4
    (INTERVAL, 100, 52, 4, 1, True),  # 50 - 52 - 1 = -3
    (INTERVAL, 100, 53, 4, 1, False),  # -4
    (Queue(max_items=3), 0, 0, 0, 1, False),  # 0 < 1
    (Queue(max_items=3), 1, 0, 1, 1, True),  # 1 - 0 - 1 = 0
    (Queue(max_items=3), 1, 0, 1, 2, False),  # -1
    (Queue(max_items=3), 3, 0, 3, 3, True),  # 0
    (Queue(max_items=3), 3, 1, 2, 3, False),  # 3 - 1 - 3 = -1
    (Stack(max_items=3), 8, 7, 1, 1, True),  # 0
    (Stack(max_items=3), 8, 8, 1, 1, False),  # -1
    (RAW, 1, 0, 1, 1, False),  # 1 < 2
    (RAW, 2, 0, 2, 9, True),  # 8 - 9 = -1
    (RAW, 2, 0, 2, 10, False),  # -2
    (RAW, 2, 8, 2, 1, True),  # 8 - 8 - 1 = -1
    (RAW, 2, 9, 2, 1, False),  # -2
    (SAMPLERS_FREE, 1, 0, 1, 10**9, True),
    (SAMPLERS_FREE, 1, 0, 0, 1, False),  # 0 < 1
    (WRITERS_FREE, 5, 10, 1, 5, True),  # 15 - 10 - 5 = 0
    (WRITERS_FREE, 5, 10, 1, 6, False),  # -1
]
INSERTS: list[tuple[Limiter, int, int, int, int, bool]] = [
    # rule, inserted, sampled, size, count, allowed
    (MinSize(min_items=3), 0, 0, 0, 10**9, True),
    (RATIO, 0, 0, 0, 13, True),  # 13 * 2 = 26
    (RATIO, 0, 0, 0, 14, False),  # 14 > 10 and 28 > 26
    (RATIO, 10, 0, 10, 3, True),  # 13 * 2 = 26
    (RATIO, 10, 0, 10, 4, False),  # 28
    (RATIO, 10, 2, 10, 4, True),  # 28 - 2 = 26
    (RATIO, 10, 1, 10, 4, False),  # 27
    (RATIO, 50, 0, 4, 6, True),  # 4 + 6 = 10 items are always allowed
    (RATIO, 50, 0, 4, 7, False),  # 11 > 10 and 114 > 26
    (RATIO, 50, 87, 10, 6, True),  # 112 - 87 = 25
    (RATIO, 50, 87, 10, 7, False),  # 27
    (INTERVAL, 0, 0, 0, 4, True),  # 4 items
    (INTERVAL, 0, 0, 0, 20, True),  # 20 * 0.5 = 10
    (INTERVAL, 0, 0, 0, 21, False),  # 10.5
    (INTERVAL, 20, 0, 20, 1, False),  # 10.5
    (INTERVAL, 20, 1, 20, 2, True),  # 11 - 1 = 10
    (INTERVAL, 20, 1, 20, 3, False),  # 10.5
    (Queue(max_items=3), 0, 0, 0, 3, True),  # 3
    (Queue(max_items=3), 0, 0, 0, 4, False),  # 4
    (Queue(max_items=3), 3, 0, 3, 1, False),  # 4
    (Queue(max_items=3), 3, 1, 2, 1, True),  # 4 - 1 = 3
    (Queue(max_items=3), 3, 1, 2, 2, False),  # 4
    (Queue(max_items=3), 3, 0, 0, 1, True),  # all were deleted: 0 + 1 <= 1
    (Stack(max_items=1), 0, 0, 0, 1, True),
    (Stack(max_items=1), 1, 0, 1, 1, False),  # 2
    (Stack(max_items=1), 1, 1, 0, 1, True),  # 2 - 1 = 1
    (RAW, 0, 0, 0, 2, True),  # 8
    (RAW, 0, 0, 0, 3, False),  # 12
    (RAW, 2, 3, 2, 1, False),  # 12 - 3 = 9
    (RAW, 2, 4, 2, 1, True),  # 8
    (RAW, 9, 0, 1, 1, True),  # 1 + 1 = 2 items
    (SAMPLERS_FREE, 1, 0, 1, 2, True),  # 9
    (SAMPLERS_FREE, 1, 0, 1, 3, False),  # 12
    (SAMPLERS_FREE, 1, 1_000, 1, 300, True),  # 903 - 1000
    (WRITERS_FREE, 1, 0, 1, 10**9, True),
]


@pytest.mark.parametrize(("rule", "inserted", "sampled", "size", "count", "allowed"), SAMPLES)
def test_samples_are_allowed_as_worked_out_by_hand(
    *, rule: Limiter, inserted: int, sampled: int, size: int, count: int, allowed: bool
) -> None:
    limiter = RateLimiter(rule, inserted=inserted, sampled=sampled)
    assert limiter.can_sample(count, size=size) is allowed
    assert (limiter.sample_waits_for(count, size=size) == "") is allowed


@pytest.mark.parametrize(("rule", "inserted", "sampled", "size", "count", "allowed"), INSERTS)
def test_inserts_are_allowed_as_worked_out_by_hand(
    *, rule: Limiter, inserted: int, sampled: int, size: int, count: int, allowed: bool
) -> None:
    limiter = RateLimiter(rule, inserted=inserted, sampled=sampled)
    assert limiter.can_insert(count, size=size) is allowed
    assert (limiter.insertable(count, size=size) == count) is allowed


@pytest.mark.parametrize(("rule", "inserted", "sampled", "size", "count", "allowed"), SAMPLES)
def test_samples_of_several_shards_count_as_those_of_one(
    *, rule: Limiter, inserted: int, sampled: int, size: int, count: int, allowed: bool
) -> None:
    limiter = RateLimiter(rule, inserted=inserted - inserted // 3, sampled=sampled // 2)
    limiter.hear(TableCounts(inserted=inserted // 3, sampled=sampled - sampled // 2, size=size // 3))
    assert limiter.can_sample(count, size=size - size // 3) is allowed
    assert (limiter.sample_waits_for(count, size=size - size // 3) == "") is allowed


@pytest.mark.parametrize(("rule", "inserted", "sampled", "size", "count", "allowed"), INSERTS)
def test_inserts_of_several_shards_count_as_those_of_one(
    *, rule: Limiter, inserted: int, sampled: int, size: int, count: int, allowed: bool
) -> None:
    limiter = RateLimiter(rule, inserted=inserted - inserted // 3, sampled=sampled // 2)
    limiter.hear(TableCounts(inserted=inserted // 3, sampled=sampled - sampled // 2, size=size // 3))
    assert limiter.can_insert(count, size=size - size // 3) is allowed
    assert (limiter.insertable(count, size=size - size // 3) == count) is allowed


@pytest.mark.parametrize("rule", [RATIO, INTERVAL, RAW, Queue(max_items=7), SAMPLERS_FREE, MinSize(min_items=5)])
@pytest.mark.parametrize(("inserted", "sampled", "size"), [(0, 0, 0), (3, 1, 2), (9, 4, 9), (20, 30, 10), (50, 20, 1)])
def test_what_is_insertable_is_the_most_that_may_be_inserted(rule: Limiter, inserted: int, sampled: int, size: int) -> None:
    limiter = RateLimiter(rule, inserted=inserted, sampled=sampled)
    count = limiter.insertable(100, size=size)
    allowed = [wanted for wanted in range(1, 101) if limiter.can_insert(wanted, size=size)]
    assert count == max(allowed, default=0)


def test_a_fractional_ratio_admits_exactly_what_the_formula_allows() -> None:
    limiter = RateLimiter(SampleToInsertRatio(samples_per_insert=0.3, min_items=1, tolerance_items=1.0), inserted=1, sampled=0)
    count = limiter.insertable(100, size=1)
    assert limiter.can_insert(count, size=1)
    assert not limiter.can_insert(count + 1, size=1)


def test_samples_that_are_counted_when_consumed_hold_nobody_back_before() -> None:
    limiter = RateLimiter(RATIO, inserted=10)
    assert limiter.can_sample(6, size=10)
    assert limiter.can_sample(6, size=10)  # drawn ahead: not counted yet
    limiter.consume(6)
    assert not limiter.can_sample(1, size=10)
    assert limiter.sampled == 6
    assert limiter.can_insert(6, size=10)


@pytest.mark.parametrize(
    ("rule", "diff"),
    [
        (RATIO, 20.0),  # the middle of 14 and 26
        (INTERVAL, 3.5),
        (Queue(max_items=30), 10.0),  # as many as are there
        (Stack(max_items=30), 10.0),
        (SAMPLERS_FREE, -9700.0),  # was far behind: stays so
        (WRITERS_FREE, 6.0),
    ],
)
def test_a_restored_table_can_be_sampled_at_once(rule: Limiter, diff: float) -> None:
    limiter = RateLimiter(rule, inserted=100, sampled=10_000)
    limiter.make_sampleable(size=10)
    assert limiter.diff == pytest.approx(diff, abs=0.5)
    assert limiter.can_sample(1, size=10)
    assert limiter.can_insert(1, size=10)


def test_a_restored_table_whose_writers_were_ahead_lets_them_go_on() -> None:
    limiter = RateLimiter(SAMPLERS_FREE, inserted=100)
    limiter.make_sampleable(size=10)
    assert limiter.diff == 3.0
    free = RateLimiter(MinSize(), inserted=5, sampled=7)
    free.make_sampleable(size=5)
    assert free.sampled == 7


def test_a_restored_shard_leaves_the_others_their_share() -> None:
    limiter = RateLimiter(RATIO, inserted=100)
    limiter.hear(TableCounts(inserted=300, sampled=580, size=5))
    limiter.make_sampleable(size=5)
    assert limiter.diff == 20.0
    assert limiter.sampled == 200


def test_reasons_name_the_inequality_and_who_must_act() -> None:
    limiter = RateLimiter(RATIO, inserted=10, sampled=6)
    assert limiter.sample_waits_for(1, size=4) == "waiting for min_items 10, have 4: writers must insert"
    assert limiter.sample_waits_for(1, size=10) == (
        "samplers are ahead of the ratio: inserted 10 x 2 - sampled 6 - 1 < min_diff 14: writers must insert"
    )
    assert limiter.insert_waits_for(size=10) == ""
    limiter.inserted = 16
    assert limiter.insert_waits_for(size=10) == (
        "writers are ahead of the ratio: (inserted 16 + 1) x 2 - sampled 6 > max_diff 26: samplers must sample"
    )


def test_reasons_of_queues_count_unsampled_items() -> None:
    queue = RateLimiter(Queue(max_items=3), inserted=5, sampled=2)
    assert queue.insert_waits_for(size=3) == "the queue is full: 3 unsampled items of max_items 3: samplers must sample"
    assert queue.sample_waits_for(4, size=3) == "waiting for 4 unsampled items in the queue, have 3: writers must insert"
    stack = RateLimiter(Stack(max_items=3), inserted=1)
    assert stack.sample_waits_for(2, size=1) == "waiting for 2 unsampled items in the stack, have 1: writers must insert"
    assert stack.insert_waits_for(size=1) == ""


@pytest.mark.parametrize(
    ("wanting", "wanted", "taken"),
    [
        (0, 100, [30]),  # nobody else waits: (500 + 30) x 2 - 980 = 80
        (0, 7, [7, 7, 7, 7, 2]),
        (1, 100, [15]),
        (1, 7, [7, 7, 1]),
        (2, 100, [10]),
        (3, 100, [8]),  # 7.5, rounded up
        (3, 5, [5, 3]),
        (39, 100, [1]),  # never none at all
    ],
)
def test_shards_whose_writers_wait_get_equal_shares_of_the_room(wanting: int, wanted: int, taken: list[int]) -> None:
    limiter = RateLimiter(RateLimit(samples_per_insert=2.0, min_items=10, min_diff=0.0, max_diff=80.0), inserted=200)
    limiter.hear(TableCounts(inserted=300, sampled=980, size=100, wanting=wanting))
    for count in [*taken, 0]:
        assert limiter.insertable(wanted, size=100) == count
        limiter.inserted += count


def test_what_one_shard_left_is_there_when_it_has_heard_again() -> None:
    limiter = RateLimiter(RateLimit(samples_per_insert=2.0, min_items=10, min_diff=0.0, max_diff=80.0), inserted=200)
    others = TableCounts(inserted=300, sampled=980, size=100, wanting=1)
    assert limiter.hear(others)
    assert not limiter.hear(others)  # nothing was taken: no more than before
    limiter.inserted += limiter.insertable(100, size=100)
    assert limiter.hear(others)
    assert limiter.insertable(100, size=100) == 8  # of 15
    limiter.sampled += 40  # 20 more, of which a half is its own at once
    assert limiter.insertable(100, size=100) == 18  # of 35


def test_a_share_of_unlimited_room_is_unlimited() -> None:
    limiter = RateLimiter(MinSize(min_items=5), inserted=50)
    limiter.hear(TableCounts(wanting=2))
    assert limiter.insertable(10**6, size=1) == 10**6


def test_a_reset_takes_no_share_away() -> None:
    limiter = RateLimiter(RateLimit(samples_per_insert=2.0, min_items=10, min_diff=0.0, max_diff=80.0), inserted=200)
    limiter.hear(TableCounts(wanting=1))
    limiter.inserted = limiter.sampled = 0
    assert limiter.insertable(100, size=0) == 20
