"""How a batch is split over the shards of a table, and how the parts become one batch again. Pure: no socket, no clock.

    masses [R] ─multinomial─▶ counts [R] ─▶ shards ─▶ parts ─▶ one batch, shuffled, p = mass_s / total * p(i | s)

Drawing the counts at random by mass, and then the items within a shard by their own probabilities, is the same as drawing from
one big table: that is why a fixed share per shard would not do. The probability that an item gets here is the one with which it
really was drawn, whatever the masses have become meanwhile, so importance weights stay exact.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from rollstream.errors import SchemaMismatch
from rollstream.replay.importance import rarest
from rollstream.replay.samples import COLUMNS, SampledItems, SampleReply

__all__ = ["BatchPlan", "DrawnItems", "Standing", "merge_parts", "split_batch"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How a shard stood at its last reply.

    Attributes:
        mass: what batches are split by; table_items: items that can be drawn; min_probability: of one draw, above 0.
        newest_version: of the weights that acted.
        at_s: when the reply came, by the client's clock.
    """

    mass: float
    table_items: int
    newest_version: int
    min_probability: float
    at_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnItems:
    """A whole batch: its items, over all shards, and what weights and lags need of the table.

    Attributes:
        items: probabilities and `table_items` are those of the whole table.
        newest_version: of the weights that acted, over all shards.
        min_probability: with which one draw gives the rarest item; 0 when no shard says.
    """

    items: SampledItems
    newest_version: int
    min_probability: float


@dataclass(slots=True)
class _Batch:
    batch_items: int
    owed: list[int]
    shares: list[float]
    parts: list[SampledItems] = field(default_factory=list)
    part_shares: list[float] = field(default_factory=list)


def split_batch(batch_items: int, masses: Floats, *, batches: int, generator: np.random.Generator) -> Ints:
    """How many items of each batch come from each shard. Shapes: masses [R] -> [batches, R], each row sums to `batch_items`."""
    if len(masses) == 1:
        return np.full((batches, 1), batch_items, np.int64)
    counts: Ints = generator.multinomial(batch_items, masses / masses.sum(), size=batches)
    return counts


class BatchPlan:
    """Batches that are wanted, in order: what each shard owes of them, and the parts that came.

    Args:
        shards: R; generator: of the splits, and of the order within a batch.
    """

    def __init__(self, shards: int, *, generator: np.random.Generator) -> None:
        self.standings: list[Standing | None] = [None] * shards
        self._generator = generator
        self._batches: deque[_Batch] = deque()

    def __len__(self) -> int:
        return len(self._batches)

    @property
    def batch_items(self) -> int:
        """Size of the batches that are planned; 0 when there are none."""
        return self._batches[0].batch_items if self._batches else 0

    @property
    def untouched(self) -> bool:
        """Whether no shard has given anything yet."""
        return not any(batch.parts for batch in self._batches)

    @property
    def ready(self) -> bool:
        """Whether the first batch is whole."""
        return bool(self._batches) and not any(self._batches[0].owed)

    def masses(self) -> Floats:
        """Mass of each shard at its last reply [R]; 0 of one that has not answered yet."""
        return np.array([0.0 if standing is None else standing.mass for standing in self.standings])

    def oldest_standing_s(self) -> float | None:
        """When the shard that was silent longest last replied; None when one never did."""
        times = [None if standing is None else standing.at_s for standing in self.standings]
        return None if None in times else min(time for time in times if time is not None)

    def add(self, batch_items: int, *, batches: int, masses: Floats) -> None:
        """Plan more batches, split by `masses` [R], of which one at least is > 0 (with one shard, its mass does not matter)."""
        if len(self.standings) == 1:
            self._batches.extend(_Batch(batch_items, [batch_items], [1.0]) for _ in range(batches))
            return
        counts = split_batch(batch_items, masses, batches=batches, generator=self._generator)
        shares = (masses / masses.sum()).tolist()
        self._batches.extend(_Batch(batch_items, row, shares) for row in counts.tolist())

    def owed_by(self, shard: int) -> npt.NDArray[np.uint32]:
        """What to ask of a shard: its part of each batch that it still owes one of, in order."""
        return np.array([batch.owed[shard] for batch in self._batches if batch.owed[shard]], np.uint32)

    def owing(self) -> list[int]:
        """Shards that owe a part of the first batch."""
        return [shard for shard, count in enumerate(self._batches[0].owed) if count] if self._batches else []

    def deliver(self, shard: int, reply: SampleReply, *, at_s: float) -> None:
        """Take up what a shard gave, for the batches that it owed longest."""
        self.stand(shard, reply, at_s=at_s)
        begin = 0
        owed = [batch for batch in self._batches if batch.owed[shard]]
        if len(reply.counts) > len(owed):
            raise SchemaMismatch(f"shard {shard} answered {len(reply.counts)} batches where {len(owed)} were asked for")
        for batch, count in zip(owed, reply.counts.tolist(), strict=False):
            if count != batch.owed[shard]:
                raise SchemaMismatch(f"shard {shard} answered a batch of {count} items where {batch.owed[shard]} were asked for")
            batch.parts.append(reply.items if len(reply.counts) == 1 else reply.items.part(slice(begin, begin + count)))
            batch.part_shares.append(batch.shares[shard])
            batch.owed[shard] = 0
            begin += count

    def stand(self, shard: int, reply: SampleReply, *, at_s: float) -> None:
        """Remember how a shard stands."""
        self.standings[shard] = Standing(
            mass=reply.mass,
            table_items=reply.table_items,
            newest_version=reply.newest_version,
            min_probability=reply.min_probability,
            at_s=at_s,
        )

    def move(self, shard: int) -> None:
        """Let other shards give what this one owes, because it has nothing left to draw; by the masses as they stand."""
        masses = self.masses()
        masses[shard] = 0.0
        if masses.sum() <= 0.0:
            return
        shares = (masses / masses.sum()).tolist()
        for batch in self._batches:
            given = split_batch(batch.owed[shard], masses, batches=1, generator=self._generator)[0].tolist()
            batch.owed[shard] = 0
            batch.owed = [owed + more for owed, more in zip(batch.owed, given, strict=True)]
            batch.shares = shares

    def clear(self) -> None:
        """Forget all batches, also what came of them; how shards stand is kept."""
        self._batches.clear()

    def take(self) -> DrawnItems:
        """The first batch, which must be `ready`, in an order that tells nothing about shards."""
        batch = self._batches.popleft()
        if len(self.standings) == 1 and self.standings[0] is not None:
            only = self.standings[0]
            return DrawnItems(items=batch.parts[0], newest_version=only.newest_version, min_probability=only.min_probability)
        items = self._merged(batch)
        known = [standing for standing in self.standings if standing is not None]
        return DrawnItems(
            items=items,
            newest_version=max((standing.newest_version for standing in known), default=0),
            min_probability=rarest(
                batch.shares, [0.0 if standing is None else standing.min_probability for standing in self.standings]
            ),
        )

    def _merged(self, batch: _Batch) -> SampledItems:
        table_items = sum(standing.table_items for standing in self.standings if standing is not None)
        place = self._generator.permutation(batch.batch_items)
        return merge_parts(batch.parts, places=place, shares=batch.part_shares, table_items=table_items)


def merge_parts(parts: Sequence[SampledItems], *, places: Ints, shares: Sequence[float], table_items: int) -> SampledItems:
    """One batch of `parts`; the k-th of all their items goes to `places[k]`, and p(i | s) becomes share_s * p(i | s)."""
    columns = {}
    for name, dtype in COLUMNS:
        column = np.empty(len(places), dtype)
        column[places] = np.concatenate([getattr(part, name) for part in parts])
        columns[name] = column
    columns["probability"][places] *= np.repeat(np.array(shares), [len(part) for part in parts])
    return SampledItems(**columns, table_items=table_items)
