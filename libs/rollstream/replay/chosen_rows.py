"""What a caller names of a writer's rows: environments by mask or number, newest rows by count or slice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from rollstream.errors import SchemaMismatch, TableError

__all__ = ["Chosen", "environment_numbers", "require_environments", "row_bounds"]

Chosen: TypeAlias = npt.NDArray[np.bool_] | npt.NDArray[np.integer[Any]] | Sequence[int] | int
"""Environments: a mask [N], or numbers."""
Ints = npt.NDArray[np.int64]


def environment_numbers(chosen: Chosen, *, environments: int) -> Ints:
    """Numbers [K] of the environments that a caller named."""
    given = np.atleast_1d(np.asarray(chosen))
    if given.dtype == np.bool_:
        if len(given) != environments:
            raise SchemaMismatch(f"a mask of environments has {environments} entries, got {len(given)}")
        return np.flatnonzero(given)
    numbers = given.astype(np.int64)
    require_environments(numbers, environments=environments)
    return numbers


def require_environments(numbers: Ints, *, environments: int) -> None:
    """Refuse numbers [K] that are no environments, or that occur twice."""
    if len(numbers) and (numbers.min() < 0 or numbers.max() >= environments):
        raise SchemaMismatch(f"environments are 0..{environments - 1}, got {numbers.tolist()}")
    if len(np.unique(numbers)) != len(numbers):
        raise SchemaMismatch(f"an environment was named twice in one call: {numbers.tolist()}")


def row_bounds(last: int | slice) -> tuple[int, int]:
    """First row and end of what is asked for, counted from one after the newest row."""
    if isinstance(last, slice):
        start, stop = last.start, 0 if last.stop is None else last.stop
        if start is None or last.step not in (None, 1) or not start < stop <= 0:
            raise TableError(
                f"last takes a slice that counts from the newest row, e.g. slice(-5, -1) or slice(-3, None), got {last}"
            )
        return int(start), int(stop)
    if last < 1:
        raise TableError(f"last takes a number of rows >= 1, or a slice, got {last}")
    return -last, 0
