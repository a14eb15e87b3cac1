"""Rate limiter: decides how many items may be inserted or sampled now. The formulas are Reverb's.

With i items inserted so far, s sampled so far, and the table's size now (inserted minus removed):

    sample k:  size >= min_items                and  (i * spi) - s - k >= min_diff
    insert k:  size + k <= min_items            or   ((i + k) * spi) - s <= max_diff
"""

from __future__ import annotations

import math

from rollstream.replay.limiter_spec import MinSize, SampleToInsertRatio

__all__ = ["RateLimiter"]


class RateLimiter:
    """Counters of one table shard and the rule over them."""

    def __init__(self, rule: MinSize | SampleToInsertRatio, *, inserted: int = 0, sampled: int = 0) -> None:
        self.rule = rule
        self.inserted = inserted
        self.sampled = sampled

    @property
    def samples_per_insert(self) -> float:
        return self.rule.samples_per_insert if isinstance(self.rule, SampleToInsertRatio) else 1.0

    @property
    def min_diff(self) -> float:
        return self.rule.min_diff if isinstance(self.rule, SampleToInsertRatio) else -math.inf

    @property
    def max_diff(self) -> float:
        return self.rule.max_diff if isinstance(self.rule, SampleToInsertRatio) else math.inf

    @property
    def diff(self) -> float:
        """By how many sampled items the writers are ahead."""
        return self.inserted * self.samples_per_insert - self.sampled

    def can_sample(self, count: int, *, size: int) -> bool:
        return size >= self.rule.min_items and self.diff - count >= self.min_diff

    def can_insert(self, count: int, *, size: int) -> bool:
        ahead = (self.inserted + count) * self.samples_per_insert - self.sampled
        return size + count <= self.rule.min_items or ahead <= self.max_diff

    def insertable(self, wanted: int, *, size: int) -> int:
        """The largest count up to `wanted` that may be inserted now."""
        if self.can_insert(wanted, size=size):
            return wanted
        by_size = self.rule.min_items - size
        by_ratio = math.floor((self.max_diff + self.sampled) / self.samples_per_insert) - self.inserted + 1
        while by_ratio > 0 and not self.can_insert(by_ratio, size=self.rule.min_items):
            by_ratio -= 1
        return max(0, min(wanted, max(by_size, by_ratio)))

    def make_sampleable(self) -> None:
        """Move the sampled counter so that a restored table stands in the middle of its tolerance and can be sampled at once."""
        if isinstance(self.rule, SampleToInsertRatio):
            middle = (self.min_diff + self.max_diff) / 2
            self.sampled = math.floor(self.inserted * self.samples_per_insert - middle)

    def sample_waits_for(self, count: int, *, size: int) -> str:
        """Why `count` samples must wait, for people; empty when they need not."""
        if size < self.rule.min_items:
            return f"waiting for min_items {self.rule.min_items}, have {size}: writers must insert"
        if not self.can_sample(count, size=size):
            return (
                f"samplers are ahead of the ratio: inserted {self.inserted} x {self.samples_per_insert:g} "
                f"- sampled {self.sampled} - {count} < min_diff {self.min_diff:g}: writers must insert"
            )
        return ""

    def insert_waits_for(self, *, size: int) -> str:
        """Why the next insert must wait, for people; empty when it need not."""
        if self.can_insert(1, size=size):
            return ""
        return (
            f"writers are ahead of the ratio: (inserted {self.inserted} + 1) x {self.samples_per_insert:g} "
            f"- sampled {self.sampled} > max_diff {self.max_diff:g}: samplers must sample"
        )
