"""What a table is: how items are chosen, removed and admitted, how large it may grow, and which rows it holds.

A `TableSpec` is checked when it is made: a setting that could leave writers and samplers waiting for each other is refused with
the inequality that fails, because such a table would hang long after the person who wrote the setting has left.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, field_validator, model_validator

from rollstream.config import Frozen
from rollstream.errors import ConfigError
from rollstream.spaces import RowSpec
from rollstream.store import chunk_prefix, keys

__all__ = ["Fifo", "Limiter", "MinSize", "Prioritized", "SampleToInsertRatio", "Sampler", "TableSpec", "Uniform"]

ENTRY_BYTES = 72
"""What Redis needs for a key beside key and value: dictionary entry, its share of the hash table, object header."""
KEY_HEADER_BYTES = 8
VALUE_HEADER_BYTES = 16


class Uniform(Frozen):
    """Every item with the same probability."""

    kind: Literal["uniform"] = "uniform"
    """Tells selectors apart in JSON."""


class Fifo(Frozen):
    """The oldest item first."""

    kind: Literal["fifo"] = "fifo"
    """Tells selectors apart in JSON."""


class Prioritized(Frozen):
    """An item with probability priority ** exponent / sum over all items.

    Priority 0 means never (and such items do not count as sampleable), unless every item has priority 0: then uniform.
    """

    kind: Literal["prioritized"] = "prioritized"
    """Tells selectors apart in JSON."""
    exponent: float = Field(default=0.6, ge=0.0, le=4.0)
    """0 ignores priorities, 1 is proportional; 0.6 is the value of the prioritized replay paper. Above 4 doubles overflow."""


Sampler: TypeAlias = Annotated[Uniform | Fifo | Prioritized, Field(discriminator="kind")]


class MinSize(Frozen):
    """Sampling waits until the table holds `min_items`; inserts never wait for samples."""

    kind: Literal["min_size"] = "min_size"
    """Tells limiters apart in JSON."""
    min_items: int = Field(default=1, ge=1)
    """Items needed before the first sample; 1 because an empty table cannot be sampled."""


class SampleToInsertRatio(Frozen):
    """Keeps sampled = samples_per_insert x inserted, within a tolerance; whoever runs ahead waits for the other."""

    kind: Literal["sample_to_insert_ratio"] = "sample_to_insert_ratio"
    """Tells limiters apart in JSON."""
    samples_per_insert: float
    """How often an item is sampled on average."""
    min_items: int = Field(ge=1)
    """Items needed before the first sample; up to here inserts never wait."""
    tolerance_items: float
    """How many sampled items the two sides may drift from the exact ratio, in each direction, before one waits."""

    @model_validator(mode="after")
    def _ratio_can_work(self) -> SampleToInsertRatio:
        ratio, tolerance = self.samples_per_insert, self.tolerance_items
        if not (ratio > 0 and math.isfinite(ratio)):
            raise ConfigError(f"samples_per_insert must be > 0, got {ratio:g}; for no ratio use MinSize(min_items=...)")
        if not (tolerance >= max(1.0, ratio) and math.isfinite(tolerance)):
            raise ConfigError(
                f"tolerance_items >= max(1, samples_per_insert) fails: {tolerance:g} < {max(1.0, ratio):g}; "
                "both sides would wait for each other, so raise tolerance_items"
            )
        return self

    @property
    def min_diff(self) -> float:
        return self.samples_per_insert * self.min_items - self.tolerance_items

    @property
    def max_diff(self) -> float:
        return self.samples_per_insert * self.min_items + self.tolerance_items


Limiter: TypeAlias = Annotated[MinSize | SampleToInsertRatio, Field(discriminator="kind")]

RowsJson: TypeAlias = tuple[tuple[str, str, tuple[int, ...]], ...]


class TableSpec(Frozen):
    """One replay table.

    >>> spec = TableSpec(name="replay", max_items=1000, rows=[("observation", "<f4", (4,)), ("reward", "<f4", ())])
    >>> spec.row_spec.row_bytes
    25
    """

    name: str = Field(pattern=r"^[a-z0-9]([a-z0-9_-]{0,40}[a-z0-9])?$")
    """Name within the experiment; its id in a cell is `<experiment id>.<name>`."""
    sampler: Sampler = Field(default_factory=Uniform)
    """How samples are chosen; uniform needs no priorities."""
    remover: Sampler = Field(default_factory=Fifo)
    """Which item goes when the table is full; the oldest, so that data stays close to the policy."""
    limiter: Limiter = Field(default_factory=MinSize)
    """Who waits for whom; by default samplers wait for the first item only."""
    max_items: int = Field(ge=1, le=1 << 26)
    """Items that the table holds at most; then each insert removes one."""
    max_times_sampled: int = Field(default=0, ge=0)
    """An item is removed once it was sampled this often; 0: no limit."""
    batch_items: int = Field(default=1, ge=1)
    """Largest batch that samplers ask for; only used to refuse a limiter which could never serve it."""
    rows: RowsJson
    """Columns of one row: `[[name, dtype, [shape]], ...]`, in order."""
    chunk_rows: int = Field(default=1, ge=1, le=65_536)
    """Consecutive rows stored under one Redis key; 1 for transitions, the stride for sequences."""
    unread_entries: int = Field(default=8, ge=1)
    """Flushes that one writer may have in the log before the shard admitted them; 8 hides latency and bounds the wait."""
    unread_bytes: int = Field(default=64 << 20, ge=1)
    """Row bytes that one writer may have in the log unadmitted; one flush is always allowed. 64 MiB bounds Redis' memory."""

    @field_validator("rows", mode="before")
    @classmethod
    def _accept_row_spec(cls, value: Any) -> Any:
        return value.to_json() if isinstance(value, RowSpec) else value

    @model_validator(mode="after")
    def _can_be_sampled(self) -> TableSpec:
        try:
            row_spec = RowSpec.from_json(self.rows)
            _ = row_spec.dtype
        except TypeError as error:
            raise ConfigError(f"rows: a column has a dtype that NumPy does not know ({error})") from error
        if row_spec.dtype.hasobject:
            raise ConfigError("rows: columns of Python objects cannot be stored; use numbers or fixed-size bytes")
        limiter = self.limiter
        if limiter.min_items > self.max_items:
            raise ConfigError(
                f"min_items <= max_items fails: {limiter.min_items} > {self.max_items}; the table could never be sampled"
            )
        uses = self.max_times_sampled
        if uses and isinstance(limiter, SampleToInsertRatio) and limiter.samples_per_insert > uses:
            raise ConfigError(
                f"samples_per_insert <= max_times_sampled fails: {limiter.samples_per_insert:g} > {uses}; items would be used up "
                "before the ratio is reached and both sides would wait for each other"
            )
        problem = self.batch_problem(self.batch_items)
        if problem:
            raise ConfigError(problem)
        return self

    @property
    def row_spec(self) -> RowSpec:
        return RowSpec.from_json(self.rows)

    @property
    def chunk_bytes(self) -> int:
        return self.row_spec.row_bytes * self.chunk_rows

    def chunk_memory_bytes(self, table_id: str) -> int:
        """Redis memory of one chunk with its key, as its allocator rounds them. Redis 7 comes close, Valkey 9 needs less."""
        key_bytes = len(chunk_prefix(table_id, 0)) + keys.CHUNK_KEY_SUFFIX_BYTES
        value = _allocated(self.chunk_bytes + VALUE_HEADER_BYTES)
        return value + _allocated(key_bytes + KEY_HEADER_BYTES) + ENTRY_BYTES

    def predicted_bytes(self, table_id: str) -> int:
        """Redis memory of the full table, when every item brings one row of its own (sharing rows only makes it less)."""
        return math.ceil(self.max_items / self.chunk_rows) * self.chunk_memory_bytes(table_id)

    def batch_problem(self, batch_items: int) -> str:
        """Why samplers of `batch_items` could wait for ever under this spec, with the inequality; empty when they cannot.

        Writers wait when inserted * spi - sampled > max_diff - spi, samplers when it is < min_diff + batch. Both at once is
        possible exactly when max_diff - spi < min_diff + batch. Where items are used up, what remains may be smaller than the
        batch; then writers must be free to insert, which they are up to min_items.
        """
        limiter, uses = self.limiter, self.max_times_sampled
        if uses and batch_items > uses * self.max_items:
            return (
                f"batch_items <= max_items * max_times_sampled fails: {batch_items} > {self.max_items} * {uses}; "
                "the table never holds that many uses, so sample smaller batches"
            )
        if isinstance(limiter, MinSize):
            return ""
        if uses and batch_items > limiter.min_items:
            return (
                f"batch_items <= min_items fails: {batch_items} > {limiter.min_items}; with max_times_sampled the table may hold "
                "fewer uses than a batch while writers wait for samplers, so raise min_items or sample smaller batches"
            )
        window, need = limiter.max_diff - limiter.min_diff, batch_items + limiter.samples_per_insert
        if window >= need:
            return ""
        return (
            f"2 * tolerance_items >= batch_items + samples_per_insert fails: {window:g} < {batch_items} + "
            f"{limiter.samples_per_insert:g}; writers and samplers would wait for each other, so raise tolerance_items to "
            f"{math.ceil(need / 2)} or sample smaller batches"
        )


def _allocated(size_bytes: int) -> int:
    """What jemalloc hands out for a request: multiples of 16 up to 128, then four sizes for each doubling."""
    step = 16 if size_bytes <= 128 else 1 << ((size_bytes - 1).bit_length() - 3)
    return -(-size_bytes // step) * step
