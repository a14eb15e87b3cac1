"""Replay: tables of items over rows in Redis; selectors, limiters, the log, writers, samplers, snapshots.

    writer ─▶ rows (Redis strings) + log (Redis stream) ─▶ shard: index, limiter ─▶ client: sample, fetch rows, return priorities

Actors use `TableWriter`, learners `TableClient`; the shard's own parts (`rollstream.replay.shard`) are for the replay service.
`LocalReplay` is all of it in one process. What services do not need is loaded when it is asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rollstream.replay import conditions as condition
from rollstream.replay.acted_error import ActedError
from rollstream.replay.client import DeleteResult, Sample, TableClient, UpdateResult
from rollstream.replay.group import TableGroup
from rollstream.replay.importance import BetaSchedule, importance_weights
from rollstream.replay.item_priority import TdMix
from rollstream.replay.limiter_spec import MinSize, Queue, RateLimit, SampleToInsertRatio, Stack
from rollstream.replay.patterns import Pattern, PatternItems, by_table, pattern_items, pattern_table
from rollstream.replay.presets import queue_table, stack_table
from rollstream.replay.returns import n_step
from rollstream.replay.rules import EachRow, Episode, ItemRule, NStep, Sequence, Transition
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
from rollstream.replay.selectors import CustomSelector, register_selector
from rollstream.replay.spec import TableSpec
from rollstream.replay.step_layout import infer_rows
from rollstream.replay.step_reference import step
from rollstream.replay.table import Table
from rollstream.replay.trajectory_writer import TrajectoryWriter
from rollstream.replay.view import ColumnView
from rollstream.replay.weighting import ImportanceWeights
from rollstream.replay.writer import TableWriter, WriteResult

if TYPE_CHECKING:
    from rollstream.replay.dataset import SampleDataset
    from rollstream.replay.local import LocalReplay
    from rollstream.replay.offline import load_minari, load_npz

__all__ = [
    "ActedError",
    "BetaSchedule",
    "ColumnView",
    "CustomSelector",
    "DeleteResult",
    "EachRow",
    "Episode",
    "Fifo",
    "ImportanceWeights",
    "ItemRule",
    "LagWeighted",
    "Lifo",
    "LocalReplay",
    "MaxHeap",
    "MinHeap",
    "MinSize",
    "Mixture",
    "NStep",
    "Pattern",
    "PatternItems",
    "Plugin",
    "Prioritized",
    "Queue",
    "RateLimit",
    "Recency",
    "Sample",
    "SampleDataset",
    "SampleToInsertRatio",
    "Sequence",
    "Stack",
    "Table",
    "TableClient",
    "TableGroup",
    "TableSpec",
    "TableWriter",
    "TdMix",
    "TrajectoryWriter",
    "Transition",
    "Uniform",
    "UpdateResult",
    "WithoutReplacement",
    "WriteResult",
    "by_table",
    "condition",
    "importance_weights",
    "infer_rows",
    "load_minari",
    "load_npz",
    "n_step",
    "pattern_items",
    "pattern_table",
    "queue_table",
    "register_selector",
    "stack_table",
    "step",
]


LOADED_WHEN_ASKED_FOR = {
    "LocalReplay": "rollstream.replay.local",
    "SampleDataset": "rollstream.replay.dataset",
    "load_minari": "rollstream.replay.offline",
    "load_npz": "rollstream.replay.offline",
}


def __getattr__(name: str) -> Any:
    if name not in LOADED_WHEN_ASKED_FOR:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(LOADED_WHEN_ASKED_FOR[name]), name)
