"""The table of an algorithm that learns from replay: what is inserted is sampled so many times, and the oldest leaves first."""

from __future__ import annotations

from typing import Any

from rollstream.algorithms.settings import ReplaySettings
from rollstream.replay import Fifo, Prioritized, SampleToInsertRatio, TableSpec, Uniform
from rollstream.spaces import RowSpec

__all__ = ["replay_table"]


def replay_table(
    config: ReplaySettings,
    rows: RowSpec,
    *,
    batch_items: int,
    chunk_rows: int | None = None,
    sampler: Prioritized | Uniform | None = None,
) -> TableSpec:
    """The table `replay` for items of `rows`.

    Args:
        batch_items: items of one sample.
        chunk_rows: rows that are stored and read together; None: the default of tables.
        sampler: None samples uniformly.
    """
    chunks: dict[str, Any] = {} if chunk_rows is None else {"chunk_rows": chunk_rows}
    return TableSpec(
        name="replay",
        sampler=sampler or Uniform(),
        remover=Fifo(),
        limiter=SampleToInsertRatio(
            samples_per_insert=config.samples_per_insert,
            min_items=config.min_items,
            tolerance_items=config.ratio_tolerance_items,
        ),
        max_items=config.table_items,
        shards=config.table_shards,
        batch_items=batch_items,
        rows=rows.fields,
        **chunks,
    )
