"""Joining batches, and batches as values that a checkpoint can hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rollstream.errors import CheckpointError, SchemaMismatch
from rollstream.spaces import Batch, Episodes

__all__ = ["batch_from_state", "batch_to_state", "item_from_state", "item_to_state", "join_batches"]


def join_batches(parts: Sequence[Batch]) -> Batch:
    """One batch with all rows of `parts`, in their order. Environment steps add up; the oldest and newest version remain."""
    if len(parts) == 1:
        return parts[0]
    names = _equal_names(parts)
    metrics: dict[str, float] = {}
    for part in parts:
        metrics.update(part.metrics)
    return Batch(
        columns={name: np.concatenate([part.columns[name] for part in parts]) for name in names},
        env_steps=sum(part.env_steps for part in parts),
        version=min(part.version for part in parts),
        newest_version=max(part.newest_version for part in parts),
        episodes=Episodes.concatenate([part.episodes for part in parts]),
        metrics=metrics,
    )


def _equal_names(parts: Sequence[Batch]) -> list[str]:
    if not parts:
        raise SchemaMismatch("cannot join no batches: a joined batch needs at least one part")
    names = list(parts[0].columns)
    for part in parts[1:]:
        differing = sorted(set(names).symmetric_difference(part.columns))
        if differing:
            raise SchemaMismatch(
                f"cannot join batches with different columns: {', '.join(differing)} is not in all of them "
                f"(actors {parts[0].actor or 'joined'} and {part.actor or 'joined'}); run the same settings on all sides"
            )
    return names


def batch_to_state(batch: Batch) -> dict[str, Any]:
    """`batch` as JSON-able values and arrays."""
    return {
        "columns": dict(batch.columns),
        "env_steps": batch.env_steps,
        "version": batch.version,
        "newest_version": batch.newest_version,
        "actor": batch.actor,
        "sequence": batch.sequence,
        "episode_returns": batch.episodes.returns,
        "episode_lengths": batch.episodes.lengths,
        "metrics": dict(batch.metrics),
    }


def batch_from_state(state: Mapping[str, Any]) -> Batch:
    """The inverse of `batch_to_state`."""
    return Batch(
        columns=dict(state["columns"]),
        env_steps=int(state["env_steps"]),
        version=int(state["version"]),
        newest_version=int(state["newest_version"]),
        actor=str(state["actor"]),
        sequence=int(state["sequence"]),
        episodes=Episodes(
            returns=np.asarray(state["episode_returns"], np.float64),
            lengths=np.asarray(state["episode_lengths"], np.int64),
        ),
        metrics=dict(state["metrics"]),
    )


def item_to_state(item: Any, *, holder: str) -> Any:
    """An item held by the operator `holder` as JSON-able values and arrays."""
    if isinstance(item, Batch):
        return {"batch": batch_to_state(item)}
    if isinstance(item, (tuple, list)):
        return {"members": [item_to_state(member, holder=holder) for member in item]}
    if item is None or isinstance(item, (str, int, float, bool, np.ndarray)):
        return {"value": item}
    raise CheckpointError(
        f"{holder} holds a {type(item).__name__}, which cannot be saved; items that are buffered must be batches, arrays, "
        "strings, numbers, or tuples of these: move the buffering operator, or convert before it"
    )


def item_from_state(state: Mapping[str, Any]) -> Any:
    """The inverse of `item_to_state`; a list comes back as a tuple."""
    if "members" in state:
        return tuple(item_from_state(member) for member in state["members"])
    return batch_from_state(state["batch"]) if "batch" in state else state["value"]
