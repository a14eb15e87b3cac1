"""Rate limiter: decides how many items may be inserted or sampled now. The formulas are Reverb's.

With i items inserted so far, s sampled so far, and the table's size now (inserted minus removed), over all shards of the table:

    sample k:  size >= min_items                and  (i * spi) - s - k >= min_diff
    insert k:  size + k <= min_items            or   ((i + k) * spi) - s <= max_diff

Removing an item takes nothing from i: what was inserted may still be sampled so often, though from other items.

A shard knows at once what it has sampled, and later what others have. So the one that samplers like best would take all room that
they make, and its writers would starve those of the others. Where the writers of n shards wait, a shard therefore inserts no more
than an n-th of the room (rounded up) before it hears of the others again; what one leaves, the others get then.
"""

from __future__ import annotations

import math

from rollstream.replay.limiter_spec import Limiter, Queue, Stack
from rollstream.replay.position import TableCounts

__all__ = ["RateLimiter"]


class RateLimiter:
    """Counters of one table shard and the rule over them.

    Attributes:
        rule: may be changed at any time.
        inserted, sampled: on this shard, since the table was made or reset.
        elsewhere: what the other shards of the table have counted, see `hear`.
    """

    def __init__(self, rule: Limiter, *, inserted: int = 0, sampled: int = 0) -> None:
        self.rule = rule
        self.inserted = inserted
        self.sampled = sampled
        self.elsewhere = TableCounts()
        self._inserted_when_heard = inserted

    def counts(self, *, size: int, wanting: bool = False) -> TableCounts:
        """What other shards must know of this one; `size` is that of this shard, `wanting` whether its writers wait."""
        return TableCounts(inserted=self.inserted, sampled=self.sampled, size=size, wanting=int(wanting))

    def hear(self, elsewhere: TableCounts) -> bool:
        """What the other shards have counted by now; returns whether more may be possible than before."""
        renewed = elsewhere.wanting > 0 and self.inserted != self._inserted_when_heard
        changed = elsewhere != self.elsewhere
        self.elsewhere, self._inserted_when_heard = elsewhere, self.inserted
        return changed or renewed

    @property
    def samples_per_insert(self) -> float:
        return self.rule.samples_per_insert

    @property
    def min_diff(self) -> float:
        return self.rule.min_diff

    @property
    def max_diff(self) -> float:
        return self.rule.max_diff

    @property
    def diff(self) -> float:
        """By how many sampled items the writers are ahead, over all shards."""
        return self._inserted * self.samples_per_insert - self._sampled

    @property
    def _inserted(self) -> int:
        return self.inserted + self.elsewhere.inserted

    @property
    def _sampled(self) -> int:
        return self.sampled + self.elsewhere.sampled

    def can_sample(self, count: int, *, size: int) -> bool:
        """Whether `count` samples are allowed now; `size` is that of this shard."""
        return size + self.elsewhere.size >= self.rule.min_items and self.diff - count >= self.min_diff

    def can_insert(self, count: int, *, size: int) -> bool:
        """Whether `count` inserts are allowed now; `size` is that of this shard."""
        ahead = (self._inserted + count) * self.samples_per_insert - self._sampled
        return size + self.elsewhere.size + count <= self.rule.min_items or ahead <= self.max_diff

    def insertable(self, wanted: int, *, size: int) -> int:
        """The largest count up to `wanted` that may be inserted now, of a share where writers of other shards wait too."""
        sharers = 1 + self.elsewhere.wanting
        if sharers == 1:
            return self._allowed(wanted, size=size)
        taken = max(0, self.inserted - self._inserted_when_heard)  # below 0 after a reset
        room = taken + self._allowed((wanted + taken - 1) * sharers + 1 - taken, size=size)
        return max(0, min(wanted, -(-room // sharers) - taken))

    def _allowed(self, wanted: int, *, size: int) -> int:
        if self.can_insert(wanted, size=size):
            return wanted
        by_size = self.rule.min_items - size - self.elsewhere.size
        by_ratio = math.floor((self.max_diff + self._sampled) / self.samples_per_insert) - self._inserted + 1
        while by_ratio > 0 and not self.can_insert(by_ratio, size=self.rule.min_items):
            by_ratio -= 1
        return max(0, min(wanted, max(by_size, by_ratio)))

    def consume(self, count: int) -> None:
        """Samples that were drawn before, uncounted, have been used now."""
        self.sampled += count

    def make_sampleable(self, *, size: int) -> None:
        """Move the sampled counter so that a restored table can be sampled at once.

        What a queue holds is unsampled. Any other rule is put in the middle of its interval, where both sides may go on; where it
        is open to one side, as far from its one bound as a tolerance would have it.
        """
        rule = self.rule
        if isinstance(rule, Queue | Stack):
            wanted = float(size + self.elsewhere.size)
        elif math.isfinite(rule.min_diff) and math.isfinite(rule.max_diff):
            wanted = (rule.min_diff + rule.max_diff) / 2
        elif math.isfinite(rule.min_diff):
            wanted = max(rule.min_diff + 2 * max(1.0, rule.samples_per_insert), self.diff)
        elif math.isfinite(rule.max_diff):
            wanted = min(rule.max_diff - 2 * max(1.0, rule.samples_per_insert), self.diff)
        else:
            return
        self.sampled = math.floor(self._inserted * rule.samples_per_insert - wanted) - self.elsewhere.sampled

    def sample_waits_for(self, count: int, *, size: int) -> str:
        """Why `count` samples must wait, for people; empty when they need not."""
        rule, everywhere = self.rule, size + self.elsewhere.size
        if everywhere < rule.min_items:
            return f"waiting for min_items {rule.min_items}, have {everywhere}: writers must insert"
        if self.can_sample(count, size=size):
            return ""
        if isinstance(rule, Queue | Stack):
            return f"waiting for {count} unsampled items in the {rule.kind}, have {self.diff:g}: writers must insert"
        return (
            f"samplers are ahead of the ratio: inserted {self._inserted} x {self.samples_per_insert:g} "
            f"- sampled {self._sampled} - {count} < min_diff {self.min_diff:g}: writers must insert"
        )

    def insert_waits_for(self, *, size: int) -> str:
        """Why the next insert must wait, for people; empty when it need not."""
        rule = self.rule
        if self.can_insert(1, size=size):
            return ""
        if isinstance(rule, Queue | Stack):
            return f"the {rule.kind} is full: {self.diff:g} unsampled items of max_items {rule.max_items}: samplers must sample"
        return (
            f"writers are ahead of the ratio: (inserted {self._inserted} + 1) x {self.samples_per_insert:g} "
            f"- sampled {self._sampled} > max_diff {self.max_diff:g}: samplers must sample"
        )
