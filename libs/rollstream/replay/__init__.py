"""Replay: tables of items over rows in Redis; selectors, limiters, the log, writers, samplers, snapshots."""

from rollstream.replay.spec import Fifo, MinSize, Prioritized, SampleToInsertRatio, TableSpec, Uniform
from rollstream.replay.table import Table

__all__ = ["Fifo", "MinSize", "Prioritized", "SampleToInsertRatio", "Table", "TableSpec", "Uniform"]
