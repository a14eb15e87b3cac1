"""What happens to observations outside of the bounds that their space declares.

Simulators round, and a float32 beside a float64 space is off by 1e-7, so nothing happens unless the spec says so (`out_of_bounds`): then
each observation is looked at before the policy sees it, and what is told is the column, the entry and the value.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from rollstream.envs.vector_environment import Step, VectorEnvironment
from rollstream.errors import EnvironmentFault
from rollstream.spaces import Columns, Leaf

__all__ = ["BoundedEnvironment"]

_LOG = logging.getLogger("rollstream.envs")


class BoundedEnvironment:
    """`environment` with observations that are checked (`error`, `warn`: once for each column) or clipped; see `VectorEnvironment`."""

    def __init__(self, environment: VectorEnvironment, *, out_of_bounds: Literal["warn", "clip", "error"]) -> None:
        self.name = environment.name
        self.envs = environment.envs
        self.observation_leaves: tuple[Leaf, ...] = environment.observation_leaves
        self.action_leaves: tuple[Leaf, ...] = environment.action_leaves
        self.resets_on_next_step = environment.resets_on_next_step
        self._environment = environment
        self._reaction = out_of_bounds
        found = {leaf.name: _limits(leaf) for leaf in environment.observation_leaves}
        self._limits = {name: limits for name, limits in found.items() if limits is not None}
        self._warned: set[str] = set()

    def reset(self, options: Mapping[str, Any] | None = None) -> Columns:
        return self._within(self._environment.reset(options), "reset")

    def step(self, actions: Columns) -> Step:
        step = self._environment.step(actions)
        final = step.final
        if final is not None:
            final = replace(final, observation=self._within(final.observation, "step", copies=final.environments))
        return replace(step, observation=self._within(step.observation, "step"), final=final)

    def close(self, *, timeout_s: float = 5.0) -> None:
        self._environment.close(timeout_s=timeout_s)

    def _within(self, columns: Columns, call: str, *, copies: npt.NDArray[np.int64] | None = None) -> Columns:
        outside: dict[str, npt.NDArray[Any]] = {}
        for name, limits in self._limits.items():
            column = columns[name]
            beyond = (column < limits.low) | (column > limits.high)
            if not beyond.any():
                continue
            if self._reaction == "clip":
                outside[name] = np.clip(column, limits.low, limits.high)
            elif self._reaction == "error" or name not in self._warned:
                row, *entry = (int(index) for index in np.argwhere(beyond)[0])
                copy = row if copies is None else int(copies[row])
                value, low, high = column[(row, *entry)], limits.low[tuple(entry)], limits.high[tuple(entry)]
                self._tell(name, f"{call}: {name}{entry or ''} of copy {copy} is {value}, outside of {low} to {high}")
        return {**columns, **outside} if outside else columns

    def _tell(self, name: str, what: str) -> None:
        text = f"environment {self.name!r} in {what}"
        if self._reaction == "error":
            raise EnvironmentFault(f"{text}; set environment.out_of_bounds to clip, warn or ignore if that is no mistake")
        self._warned.add(name)
        _LOG.warning("%s; told once for each column", text)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Limits:
    """Smallest and largest value of each number of a leaf, in its dtype."""

    low: npt.NDArray[Any]
    high: npt.NDArray[Any]


def _limits(leaf: Leaf) -> _Limits | None:
    """None where nothing can be outside: no finite bound, or bounds that are those of the dtype."""
    dtype = np.dtype(leaf.dtype)
    if leaf.kind == "multi_binary":
        given: Mapping[str, Any] = {"low": np.zeros(leaf.shape), "high": np.ones(leaf.shape)}
    elif leaf.counts:
        starts = np.asarray(leaf.starts)
        given = {"low": starts, "high": starts + np.asarray(leaf.counts) - 1}
    else:
        given = {"low": np.asarray(leaf.low), "high": np.asarray(leaf.high)}
    if dtype.kind in "iu" and leaf.kind == "box":
        ends = np.iinfo(dtype)
        if (given["low"] <= ends.min).all() and (given["high"] >= ends.max).all():
            return None
    if not np.isfinite([given["low"], given["high"]]).any():
        return None
    return _Limits(low=given["low"].astype(dtype).reshape(leaf.shape), high=given["high"].astype(dtype).reshape(leaf.shape))
