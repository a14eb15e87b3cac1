"""Replay: tables of items over rows in Redis; selectors, limiters, the log, writers, samplers, snapshots.

    writer ─▶ rows (Redis strings) + log (Redis stream) ─▶ shard: index, limiter ─▶ client: sample, fetch rows, return priorities

Actors use `TableWriter`, learners `TableClient`; the shard's own parts (`rollstream.replay.shard`) are for the replay service.
"""

from rollstream.replay.client import Sample, TableClient, UpdateResult
from rollstream.replay.importance import importance_weights
from rollstream.replay.returns import n_step
from rollstream.replay.rules import EachRow, NStep
from rollstream.replay.spec import Fifo, MinSize, Prioritized, SampleToInsertRatio, TableSpec, Uniform
from rollstream.replay.table import Table
from rollstream.replay.writer import TableWriter, WriteResult

__all__ = [
    "EachRow",
    "Fifo",
    "MinSize",
    "NStep",
    "Prioritized",
    "Sample",
    "SampleToInsertRatio",
    "Table",
    "TableClient",
    "TableSpec",
    "TableWriter",
    "Uniform",
    "UpdateResult",
    "WriteResult",
    "importance_weights",
    "n_step",
]
