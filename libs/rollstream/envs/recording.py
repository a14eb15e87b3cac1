"""What T vector steps leave behind, kept time-major in buffers that are made once, and turned into rows at the end.

    buffers [T(+1), N, ...]   one contiguous write a column and step, aligned, no allocation
    rows    [N * T + finals]  environment after environment, packed, made in a handful of vectorized copies a rollout

FINAL rows are where the two autoreset conventions differ, and only here (step t acts on observation t):

    resets_on_next_step   the step after an episode's end acts on the final observation, so that step *is* the FINAL row.
                          If the episode ends with the last step of a rollout, the FINAL row is appended to that rollout, and
                          the first step of the next one leaves no row.
    otherwise             each final observation is an extra row, behind the row of the step that ended the episode.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.spaces import Columns, Episodes, Flag, RowSpec
from rollstream.spaces.opaque import opaque

__all__ = ["EpisodeTally", "ExtraFinals", "Recording", "final_flags", "merged_rows", "transposed_into"]

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtraFinals:
    """FINAL rows that stand behind the row of step `step`: arrays [K], columns [K, ...] (observation and extras)."""

    step: npt.NDArray[np.int64]
    environment: npt.NDArray[np.int64]
    columns: Columns


class Recording:
    """Buffers for up to `steps` vector steps of `envs` environments.

    Attributes:
        columns: [steps, N, ...] by name, observation columns [steps + 1, N, ...].
        views: for each step the columns of that step [N, ...], made once because slicing costs more than copying.
        reward, terminated, truncated: [steps, N].
    """

    def __init__(self, row_spec: RowSpec, *, observation: Sequence[str], envs: int, steps: int) -> None:
        self.steps = steps
        self.observation_names = tuple(observation)
        self.columns: dict[str, Array] = {
            column.name: np.zeros((steps + (column.name in observation), envs, *column.shape), column.dtype)
            for column in row_spec.columns
            if column.name != "reward"
        }
        self.views: list[dict[str, Array]] = [
            {name: self.columns[name][step] for name in self.columns if step < len(self.columns[name])}
            for step in range(steps + 1)
        ]
        self.observations: list[dict[str, Array]] = [{name: view[name] for name in self.observation_names} for view in self.views]
        self.reward = np.zeros((steps, envs), np.float64)
        self.terminated = np.zeros((steps, envs), np.bool_)
        self.truncated = np.zeros((steps, envs), np.bool_)


def merged_rows(
    dense: npt.NDArray[np.void], finals: npt.NDArray[np.void], *, at: ExtraFinals, skipped: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.void], npt.NDArray[np.int64]]:
    """Rows and offsets of a rollout: `dense` [N, T] with `finals` [K] put behind their steps, without the first of `skipped`.

    Args:
        at: where the finals belong.
        skipped: [N]; environments whose first step leaves no row.
    """
    envs, steps = dense.shape
    counts = np.full(envs, steps, np.int64) - skipped
    counts += np.bincount(at.environment, minlength=envs)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    flat = dense.reshape(-1)
    if len(finals) == 0 and not skipped.any():
        return flat, offsets
    plain = opaque(dense.dtype.itemsize)  # copied as bytes, not field by field
    position = at.environment * steps + at.step + 1
    order = np.argsort(position, kind="stable")
    target = position[order] + np.arange(len(order))
    merged = np.empty(flat.size + len(order), plain)
    from_dense = np.ones(len(merged), np.bool_)
    from_dense[target] = False
    merged[from_dense] = flat.view(plain)
    merged[target] = finals[order].view(plain)
    if skipped.any():
        first = np.flatnonzero(skipped) * steps
        keep = np.ones(len(merged), np.bool_)
        keep[first + np.searchsorted(target, first, side="right")] = False
        merged = merged[keep]
    return merged.view(dense.dtype), offsets


def final_flags(terminated: Array, truncated: Array) -> npt.NDArray[np.uint8]:
    """Flags of FINAL rows; both reasons are stored when both happened."""
    flags = terminated.astype(np.uint8) * np.uint8(Flag.TERMINATED)
    flags |= truncated.astype(np.uint8) * np.uint8(Flag.TRUNCATED)
    flags[flags != 0] |= np.uint8(Flag.FINAL)
    return flags


class EpisodeTally:
    """Return and length of each running episode, carried from rollout to rollout."""

    def __init__(self, *, envs: int) -> None:
        self._returns = np.zeros(envs, np.float64)
        self._lengths = np.zeros(envs, np.int64)

    def add(self, reward: Array, live: npt.NDArray[np.bool_], done: npt.NDArray[np.bool_]) -> Episodes:
        """Account for a rollout; the episodes that ended in it, in order of time. All arguments are [T, N]."""
        returns = np.cumsum(np.where(live, reward, 0.0), axis=0) + self._returns
        lengths = np.cumsum(live, axis=0) + self._lengths
        environment, step = np.nonzero((done & live).T)
        before = np.zeros(len(step), np.int64) - 1
        same = environment[1:] == environment[:-1]
        before[1:][same] = step[:-1][same]
        carried = before >= 0
        start_return = np.where(carried, returns[before, environment], 0.0)
        start_length = np.where(carried, lengths[before, environment], 0)
        ended_returns = returns[step, environment] - start_return
        ended_lengths = lengths[step, environment] - start_length
        self._returns = returns[-1].copy()
        self._lengths = lengths[-1].copy()
        last = np.flatnonzero(np.append(~same, True)) if len(environment) else np.zeros(0, np.int64)
        self._returns[environment[last]] -= returns[step[last], environment[last]]
        self._lengths[environment[last]] -= lengths[step[last], environment[last]]
        order = np.argsort(step, kind="stable")
        return Episodes(returns=ended_returns[order], lengths=ended_lengths[order])


def transposed_into(rows: npt.NDArray[np.void], columns: Mapping[str, Array], *, steps: int) -> None:
    """Fill columns of `rows` [N, T] from time-major arrays [T, N, ...]."""
    for name, column in columns.items():
        rows[name] = np.swapaxes(column[:steps], 0, 1)
