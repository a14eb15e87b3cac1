"""Specs of tables that are used like a queue or a stack: each item comes out once."""

from __future__ import annotations

from typing import Any

from rollstream.replay.limiter_spec import Queue, Stack
from rollstream.replay.selector_spec import Fifo, Lifo
from rollstream.replay.spec import TableSpec

__all__ = ["queue_table", "stack_table"]


def queue_table(name: str, *, max_items: int, rows: Any) -> TableSpec:
    """First in, first out: items leave in the order in which they came, once; writers wait while `max_items` are there."""
    return TableSpec(
        name=name,
        sampler=Fifo(),
        remover=Fifo(),
        limiter=Queue(max_items=max_items),
        max_items=max_items,
        max_times_sampled=1,
        rows=rows,
    )


def stack_table(name: str, *, max_items: int, rows: Any) -> TableSpec:
    """Last in, first out: as `queue_table`, newest first."""
    return TableSpec(
        name=name,
        sampler=Lifo(),
        remover=Lifo(),
        limiter=Stack(max_items=max_items),
        max_items=max_items,
        max_times_sampled=1,
        rows=rows,
    )
