"""Replay: tables of items over rows in Redis; selectors, limiters, the log, writers, samplers, snapshots.

    writer ─▶ rows (Redis strings) + log (Redis stream) ─▶ shard: index, limiter ─▶ client: sample, fetch rows, return priorities

Actors use `TableWriter`, learners `TableClient`; the shard's own parts (`rollstream.replay.shard`) are for the replay service.
"""

from rollstream.replay.client import Sample, TableClient, UpdateResult
from rollstream.replay.group import TableGroup
from rollstream.replay.importance import importance_weights
from rollstream.replay.limiter_spec import MinSize, Queue, RateLimit, SampleToInsertRatio, Stack
from rollstream.replay.presets import queue_table, stack_table
from rollstream.replay.returns import n_step
from rollstream.replay.rules import EachRow, NStep
from rollstream.replay.selector_spec import (
    Fifo,
    LagWeighted,
    Lifo,
    MaxHeap,
    MinHeap,
    Mixture,
    Plugin,
    Prioritized,
    Recency,
    Uniform,
    WithoutReplacement,
)
from rollstream.replay.spec import TableSpec
from rollstream.replay.table import Table
from rollstream.replay.writer import TableWriter, WriteResult

__all__ = [
    "EachRow",
    "Fifo",
    "LagWeighted",
    "Lifo",
    "MaxHeap",
    "MinHeap",
    "MinSize",
    "Mixture",
    "NStep",
    "Plugin",
    "Prioritized",
    "Queue",
    "RateLimit",
    "Recency",
    "Sample",
    "SampleToInsertRatio",
    "Stack",
    "Table",
    "TableClient",
    "TableGroup",
    "TableSpec",
    "TableWriter",
    "Uniform",
    "UpdateResult",
    "WithoutReplacement",
    "WriteResult",
    "importance_weights",
    "n_step",
    "queue_table",
    "stack_table",
]
