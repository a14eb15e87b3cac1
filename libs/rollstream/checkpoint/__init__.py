"""Checkpoints: a consistent cut of a run, written atomically, verified before it is trusted."""

from rollstream.checkpoint.checkpoint import (
    CheckpointRecord,
    LoadedCheckpoint,
    list_checkpoints,
    newest_good,
    prune,
    read_checkpoint,
    resolve,
    verify_checkpoint,
    write_checkpoint,
)
from rollstream.checkpoint.tree import Arrays, Tree

__all__ = [
    "Arrays",
    "CheckpointRecord",
    "LoadedCheckpoint",
    "Tree",
    "list_checkpoints",
    "newest_good",
    "prune",
    "read_checkpoint",
    "resolve",
    "verify_checkpoint",
    "write_checkpoint",
]
