"""NumPy's op table for finite differences: what no gradient flows through does not move with the parameters either."""

from __future__ import annotations

from typing import Any

import numpy as np

from rollstream.graph.backends.numpy_ops import NumpyOps
from rollstream.graph.ops import Array

__all__ = ["HeldOps"]


class HeldOps(NumpyOps):
    """`stop_gradient` gives in each run what it gave in the first: a constant, as autograd sees it. Call `again` before a run."""

    def __init__(self, *, dtype: type[np.floating[Any]] = np.float64) -> None:
        super().__init__(dtype=dtype)
        self._held: list[Array] = []
        self._next: int | None = None

    def again(self) -> None:
        """From here on a further run."""
        self._next = 0

    def stop_gradient(self, x: Array) -> Array:
        if self._next is None:
            self._held.append(x)
            return x
        self._next += 1
        return self._held[self._next - 1]
