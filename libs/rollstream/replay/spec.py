"""What a table is: how items are chosen, removed and admitted, how large it may grow, and which rows it holds.

A `TableSpec` is checked when it is made: a setting that could leave writers and samplers waiting for each other is refused with
the inequality that fails, because such a table would hang long after the person who wrote the setting has left.
"""

from __future__ import annotations

import math
from typing import Any, Literal, TypeAlias

import numpy as np
from pydantic import Field, field_validator, model_validator

from rollstream.config import Frozen
from rollstream.errors import ConfigError
from rollstream.replay.encoding_choice import choose_encoding
from rollstream.replay.limiter_spec import Limiter, MinSize
from rollstream.replay.selector_spec import Fifo, Sampler, Uniform, goes_by_order
from rollstream.replay.table_memory import chunk_memory_bytes, garbage_bytes, index_bytes, log_bytes
from rollstream.replay.view import ColumnView
from rollstream.spaces import Column, RowSpec

__all__ = ["TableSpec"]

RowsJson: TypeAlias = tuple[tuple[str, str, tuple[int, ...]], ...]
STORABLE_KINDS = "biufcSU"
NAME = r"^[a-z0-9]([a-z0-9_-]{0,40}[a-z0-9])?$"


class TableSpec(Frozen):
    """One replay table.

    >>> spec = TableSpec(name="replay", max_items=1000, rows=[("observation", "<f4", (4,)), ("reward", "<f4", ())])
    >>> spec.row_spec.row_bytes
    25
    """

    name: str = Field(pattern=NAME)
    """Name within the experiment; its id in a cell is `<experiment id>.<name>`."""
    sampler: Sampler = Field(default_factory=Uniform)
    """How samples are chosen; uniform needs no priorities."""
    remover: Sampler = Field(default_factory=Fifo)
    """Which item goes when the table is full; the oldest, so that data stays close to the policy."""
    limiter: Limiter = Field(default_factory=MinSize)
    """Who waits for whom; by default samplers wait for the first item only."""
    max_items: int = Field(ge=1, le=1 << 30)
    """Items that the table holds at most, over all shards; then each insert removes one."""
    max_bytes: int | None = Field(default=None, ge=1)
    """Redis memory that the table's rows take at most, over all shards; then inserts remove items. None: only items count."""
    max_times_sampled: int = Field(default=0, ge=0)
    """An item is removed once it was sampled this often; 0: no limit."""
    max_lag_versions: int = Field(default=0, ge=0)
    """Items whose newest row was acted by weights more than this many versions behind the newest are not sampled; 0: no limit."""
    batch_items: int = Field(default=1, ge=1)
    """Largest batch that samplers ask for; only used to refuse a limiter which could never serve it."""
    shards: int = Field(default=1, ge=1, le=256)
    """Replay shards that hold the table's parts; each writer writes to one of them. 1 needs the fewest processes."""
    rows: RowsJson
    """Columns of one row: `[[name, dtype, [shape]], ...]`, in order."""
    rows_of: str = Field(default="", pattern=r"^$|" + NAME)
    """Table of the same experiment whose rows this table's items use, so that they are stored once; empty: rows of its own."""
    chunk_rows: int = Field(default=1, ge=1, le=65_536)
    """Consecutive rows stored under one Redis key; 1 for transitions, the stride for sequences."""
    encoding: Literal["auto", "raw", "zstd"] = "auto"
    """How rows are stored: `raw` is fastest, `zstd` smallest; `auto` takes zstd for rows of 2 KiB and more with frames in them."""
    delta: bool | None = None
    """With zstd, store integer columns as differences to the row before; None: large ones, while that makes chunks smaller."""
    view: tuple[ColumnView, ...] = ()
    """Columns of a sample as parts of an item, relative to its newest row; empty: all columns of all its rows."""
    stack: dict[str, int] = Field(default_factory=dict)
    """Columns that are read as stacks of that many frames, made of each row and those before it; stored once all the same."""
    unread_entries: int = Field(default=8, ge=1)
    """Flushes that one writer may have in the log before the shard admitted them; 8 hides latency and bounds the wait."""
    unread_bytes: int = Field(default=64 << 20, ge=1)
    """Row bytes that one writer may have in the log unadmitted; one flush is always allowed. 64 MiB bounds Redis' memory."""

    @field_validator("rows", mode="before")
    @classmethod
    def _accept_row_spec(cls, value: Any) -> Any:
        return value.to_json() if isinstance(value, RowSpec) else value

    @model_validator(mode="after")
    def _rows_can_be_stored(self) -> TableSpec:
        row_spec = RowSpec.from_json(self.rows)
        for column in row_spec.columns:
            _require_storable(column)
        names = row_spec.dtype.names or ()
        wanted = [*self.stack, *(view.column for view in self.view)]
        for name in wanted:
            if name not in names:
                raise ConfigError(f"view and stack name the column {name!r}, the rows have: {', '.join(names)}")
        shown = [view.name for view in self.view]
        twice = next((name for name in shown if shown.count(name) > 1), None)
        if twice is not None:
            raise ConfigError(f"two views have the name {twice!r}, of which samples could show only one; rename one of them")
        for name, frames in self.stack.items():
            if not 1 <= frames <= 256:
                raise ConfigError(f"stack of {name} must be between 1 and 256 frames, got {frames}")
        if self.rows_of == self.name:
            raise ConfigError(f"rows_of names the table {self.name} itself; leave it empty, a table has rows of its own")
        return self

    @model_validator(mode="after")
    def _can_be_sampled(self) -> TableSpec:
        limiter = self.limiter
        if limiter.min_items > self.max_items:
            raise ConfigError(
                f"min_items <= max_items fails: {limiter.min_items} > {self.max_items}; the table could never be sampled"
            )
        if limiter.kind in ("queue", "stack") and limiter.max_items > self.max_items:
            raise ConfigError(
                f"max_items of the {limiter.kind} <= max_items fails: {limiter.max_items} > {self.max_items}; items would be removed "
                "before they were sampled"
            )
        uses = self.max_times_sampled
        if uses and math.isfinite(limiter.max_diff) and limiter.samples_per_insert > uses:
            raise ConfigError(
                f"samples_per_insert <= max_times_sampled fails: {limiter.samples_per_insert:g} > {uses}; items would be used up "
                "before the ratio is reached and both sides would wait for each other"
            )
        if self.shards > 1 and goes_by_order(self.sampler):
            raise ConfigError(
                f"shards == 1 fails: {self.shards}; the sampler {self.sampler.kind} names one item of the whole table, which no shard "
                "knows; use one shard, or a sampler that draws at random"
            )
        if self.max_bytes is not None and self.max_bytes < self.shards * self.chunk_memory_bytes(""):
            raise ConfigError(
                f"max_bytes must be >= {self.shards * self.chunk_memory_bytes('')}, one chunk for each shard, got {self.max_bytes}"
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

    @property
    def resolved_encoding(self) -> Literal["raw", "zstd"]:
        """The encoding that `auto` stands for."""
        return choose_encoding(self.row_spec) if self.encoding == "auto" else self.encoding

    @property
    def items_per_shard(self) -> int:
        """`max_items` of one shard."""
        return -(-self.max_items // self.shards)

    @property
    def bytes_per_shard(self) -> int | None:
        """`max_bytes` of one shard."""
        return None if self.max_bytes is None else -(-self.max_bytes // self.shards)

    def chunk_memory_bytes(self, table_id: str) -> int:
        """Redis memory of one raw chunk with its key, as its allocator rounds them."""
        return chunk_memory_bytes(table_id, self.chunk_bytes)

    def predicted_bytes(self, table_id: str) -> int:
        """Redis memory of the full table: rows (when every item brings one of its own; sharing only makes it less), log, snapshot."""
        if self.rows_of:
            return log_bytes(self.max_items)
        rows = math.ceil(self.max_items / self.chunk_rows) * self.chunk_memory_bytes(table_id)
        if self.max_bytes is not None:
            rows = min(rows, self.max_bytes)
        return rows + garbage_bytes(rows) + log_bytes(self.max_items)

    def predicted_index_bytes(self) -> int:
        """Memory of the shard processes for the full table, over all of them."""
        return self.shards * index_bytes(
            self.items_per_shard,
            chunk_rows=self.chunk_rows,
            sampler=self.sampler,
            remover=self.remover,
            limited_uses=self.max_times_sampled > 0,
        )

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
        if not math.isfinite(limiter.max_diff) or not math.isfinite(limiter.min_diff):
            return ""
        if limiter.kind in ("queue", "stack"):
            if batch_items <= limiter.max_items:
                return ""
            return (
                f"batch_items <= max_items of the {limiter.kind} fails: {batch_items} > {limiter.max_items}; it never holds so many, "
                "so sample smaller batches"
            )
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


def _require_storable(column: Column) -> None:
    try:
        dtype = np.dtype(column.dtype)
    except TypeError as error:
        raise ConfigError(f"rows: the column {column.name} has a dtype that NumPy does not know ({error})") from error
    if dtype.kind not in STORABLE_KINDS:
        raise ConfigError(
            f"rows: the column {column.name} of {dtype} cannot be stored; use numbers or fixed-size bytes, and whole numbers for times"
        )
