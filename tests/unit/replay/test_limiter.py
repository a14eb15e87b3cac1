"""Rate limiter: Reverb's formulas, worked by hand."""

from __future__ import annotations

from rollstream.replay import MinSize, SampleToInsertRatio
from rollstream.replay.limiter import RateLimiter

RATIO = SampleToInsertRatio(samples_per_insert=2.0, min_items=10, tolerance_items=6.0)  # min_diff 14, max_diff 26


def test_min_size_holds_samples_back_until_enough_items_are_there() -> None:
    limiter = RateLimiter(MinSize(min_items=3), inserted=2)
    assert not limiter.can_sample(1, size=2)
    assert limiter.can_sample(1_000_000, size=3)
    assert limiter.insertable(1_000_000, size=3) == 1_000_000


def test_inserts_up_to_min_items_never_wait() -> None:
    limiter = RateLimiter(RATIO)
    assert limiter.insertable(100, size=0) == 13  # (13 * 2 - 0) = 26 <= max_diff; 14 would be 28


def test_warm_up_is_admitted_even_where_the_ratio_says_no() -> None:
    limiter = RateLimiter(RATIO, inserted=50)
    assert limiter.insertable(100, size=4) == 6
    assert limiter.can_insert(6, size=4)
    assert not limiter.can_insert(7, size=4)


def test_samples_stop_at_min_diff_and_inserts_at_max_diff() -> None:
    limiter = RateLimiter(RATIO, inserted=10)  # diff 20
    assert limiter.can_sample(6, size=10)  # 20 - 6 = 14
    assert not limiter.can_sample(7, size=10)
    assert limiter.can_insert(3, size=10)  # 26
    assert not limiter.can_insert(4, size=10)
    limiter.sampled = 6
    assert limiter.insertable(100, size=10) == 6  # (16 * 2) - 6 = 26


def test_a_fractional_ratio_admits_exactly_what_the_formula_allows() -> None:
    limiter = RateLimiter(SampleToInsertRatio(samples_per_insert=0.3, min_items=1, tolerance_items=1.0), inserted=1, sampled=0)
    count = limiter.insertable(100, size=1)
    assert limiter.can_insert(count, size=1)
    assert not limiter.can_insert(count + 1, size=1)


def test_a_restored_limiter_stands_in_the_middle_of_its_tolerance() -> None:
    limiter = RateLimiter(RATIO, inserted=100, sampled=10_000)
    limiter.make_sampleable(size=10)
    assert limiter.diff == 20.0
    assert limiter.can_sample(6, size=10)
    assert limiter.can_insert(1, size=10)


def test_reasons_name_the_inequality_and_who_must_act() -> None:
    limiter = RateLimiter(RATIO, inserted=10, sampled=6)
    assert limiter.sample_waits_for(1, size=4) == "waiting for min_items 10, have 4: writers must insert"
    assert "inserted 10 x 2 - sampled 6 - 1 < min_diff 14: writers must insert" in limiter.sample_waits_for(1, size=10)
    assert limiter.insert_waits_for(size=10) == ""
    limiter.inserted = 16
    assert "(inserted 16 + 1) x 2 - sampled 6 > max_diff 26: samplers must sample" in limiter.insert_waits_for(size=10)
