"""Lets a policy see rows for its state alone: the API `observe`, run in NumPy, in blocks of a fixed number of rows."""

from __future__ import annotations

import numpy as np

from rollstream.errors import ConfigError
from rollstream.graph.declare import Component
from rollstream.graph.executable import NumpyExecutable
from rollstream.graph.inputs import fill
from rollstream.graph.memory import Memory
from rollstream.spaces import Columns

__all__ = ["Observer"]

WEIGHT = "weight"


class Observer:
    """`observe(observation, weight)` of a policy: rows of weight 0 are padding."""

    def __init__(self, policy: Component, *, memory: Memory, rows: int) -> None:
        if "observe" not in policy.apis:
            raise ConfigError(f"{type(policy).__name__} has state but no API observe, so nothing could ever change it; add one")
        self._rows = rows
        self._executable = NumpyExecutable(policy, api="observe", rows=rows, memory=memory)
        self._columns = [name for name in self._executable.inputs if name != WEIGHT]

    def observe(self, columns: Columns) -> None:
        """Every row once; a missing `weight` is 1."""
        inputs, total = self._executable.inputs, len(columns[self._columns[0]])
        weight = columns.get(WEIGHT)
        for start in range(0, total, self._rows):
            count = min(self._rows, total - start)
            for name in self._columns:
                fill(inputs[name][:count], columns[name][start : start + count], name=name, where="observe")
            inputs[WEIGHT][count:] = 0
            inputs[WEIGHT][:count] = np.float32(1) if weight is None else weight[start : start + count]
            self._executable.run()
