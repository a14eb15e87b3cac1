"""From what a user gives for one step of N environments to columns of rows: nested mappings, casts, companions, clear errors.

    {"observation": {"camera": u1[N, 84, 84], "pose": f4[N, 7]}, "action": i8[N], "tokens": [N lists of up to 16]}
        ─▶ observation.camera, observation.pose, action, tokens + tokens.length

A column with a companion `.present` may be left out, one with `.length` may be given as N lists of varying length.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.errors import NonFiniteError, SchemaMismatch
from rollstream.spaces import Column, RowSpec, length_name, present_name

__all__ = ["StepLayout", "entries_of", "infer_rows"]

Array = npt.NDArray[Any]
Ints = npt.NDArray[np.int64]


class StepLayout:
    """How steps map to the columns of a table's rows.

    Args:
        finite: columns that hold no NaN and no infinity.

    Attributes:
        names: columns that a step gives, in order of the rows.
        required: those that must be there; the others are optional.
    """

    def __init__(self, rows: RowSpec, *, finite: frozenset[str] = frozenset()) -> None:
        by_name = {column.name: column for column in rows.columns}
        lengths = {length_name(name): name for name in by_name if length_name(name) in by_name}
        presences = {present_name(name): name for name in by_name if present_name(name) in by_name}
        self._optional = frozenset(presences.values())
        self._ragged = frozenset(lengths.values())
        self._finite = tuple(finite)
        self._companions = lengths.keys() | presences.keys()
        self._shapes = {name: column.shape for name, column in by_name.items()}
        self._dtypes = {name: np.dtype(column.dtype) for name, column in by_name.items()}
        self.names = tuple(name for name in by_name if name not in self._companions)
        self.required = frozenset(self.names) - self._optional

    def read(self, step: Mapping[str, Any], *, count: int) -> dict[str, Array]:
        """Columns [count, ...] of the step, companions included; arrays that fit are passed on without a copy.

        Raises:
            SchemaMismatch: names the column that is unknown, or has another shape or kind of number.
        NonFiniteError: a column that must be finite is not.
        """
        columns: dict[str, Array] = {}
        self._take(step, "", count, columns)
        for name in self._finite:
            if name in columns and not np.isfinite(columns[name]).all():
                bad = int(np.flatnonzero(~np.isfinite(columns[name]))[0])
                raise NonFiniteError(
                    f"column {name} is {columns[name][bad]} in entry {bad} of the step, and item priorities are computed from it; "
                    "write finite TD errors"
                )
        return columns

    def missing(self, given: Iterable[str]) -> list[str]:
        """Required columns that are not among these."""
        return sorted(self.required.difference(given))

    def absent(self, given: Mapping[str, Array]) -> list[str]:
        """Optional columns, and their companions, that a step left out."""
        return [name for column in self._optional if column not in given for name in (column, *self._companions_of(column))]

    def _take(self, step: Mapping[str, Any], prefix: str, count: int, columns: dict[str, Array]) -> None:
        for key, value in step.items():
            name = prefix + key if prefix else key
            dtype = self._dtypes.get(name)
            if dtype is None:
                if not isinstance(value, Mapping):
                    raise SchemaMismatch(f"the step has a column {name!r}, the rows have: {', '.join(self.names)}")
                self._take(value, f"{name}.", count, columns)
                continue
            if name in self._ragged and isinstance(value, list | tuple):
                self._take_ragged(name, value, count, columns)
                continue
            if (
                type(value) is np.ndarray
                and value.dtype == dtype
                and value.shape[1:] == self._shapes[name]
                and len(value) == count
            ):
                columns[name] = value
            else:
                columns[name] = self._converted(name, value, count)
            if name in self._optional:
                columns.setdefault(present_name(name), np.ones(count, np.uint8))
            if name in self._ragged:
                full = np.full(count, self._shapes[name][0], self._dtypes[length_name(name)])
                columns.setdefault(length_name(name), full)

    def _companions_of(self, name: str) -> list[str]:
        return [one for one in (present_name(name), length_name(name)) if one in self._companions]

    def _take_ragged(self, name: str, values: Sequence[Any], count: int, columns: dict[str, Array]) -> None:
        shape, dtype = self._shapes[name], self._dtypes[name]
        if len(values) != count:
            raise SchemaMismatch(f"column {name}: expected {count} lists, one for each environment, got {len(values)}")
        lengths = np.fromiter(map(len, values), np.int64, count)
        if lengths.max(initial=0) > shape[0]:
            raise SchemaMismatch(
                f"column {name}: a step holds at most {shape[0]} entries, got {lengths.max()}; make the column larger, or give less"
            )
        padded = np.zeros((count, *shape), dtype)
        entries = [np.asarray(value) for value in values if len(value)]
        if entries:
            joined = np.concatenate(entries)
            padded[np.arange(shape[0]) < lengths[:, None]] = self._converted_entries(name, joined, shape[1:], dtype)
        columns[name] = padded
        columns[length_name(name)] = lengths.astype(self._dtypes[length_name(name)])
        if name in self._optional:
            columns.setdefault(present_name(name), np.ones(count, np.uint8))

    def _converted(self, name: str, value: Any, count: int) -> Array:
        try:
            array = np.asarray(value)
        except ValueError as error:
            raise SchemaMismatch(
                f"column {name}: its entries differ in shape ({error}); give one array [{count}, ...]"
            ) from error
        if array.shape[:1] != (count,):
            raise SchemaMismatch(
                f"column {name}: expected {count} entries, one for each environment, got an array of shape {list(array.shape)}"
            )
        return self._converted_entries(name, array, self._shapes[name], self._dtypes[name])

    def _converted_entries(self, name: str, array: Array, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        if array.shape[1:] != shape:
            raise SchemaMismatch(
                f"column {name}: expected entries of {dtype}{list(shape)}, got {array.dtype}{list(array.shape[1:])}"
            )
        if array.dtype == dtype or np.can_cast(array.dtype, dtype, "same_kind"):
            return array
        if array.dtype.kind in "biu" and dtype.kind in "biu" and bool((array.astype(dtype) == array).all()):
            return array
        raise SchemaMismatch(f"column {name}: expected numbers of {dtype}, got {array.dtype} that do not fit without loss")


def infer_rows(step: Mapping[str, Any]) -> RowSpec:
    """The columns of steps like this one, of N environments: names joined by dots, dtypes and shapes as they are.

    >>> rows = infer_rows({"observation": {"pose": np.zeros((8, 7), np.float32)}, "action": np.zeros(8, np.int64)})
    >>> [(column.name, column.dtype, column.shape) for column in rows.columns]
    [('observation.pose', '<f4', (7,)), ('action', '<i8', ())]
    """
    columns: list[Column] = []

    def take(nested: Mapping[str, Any], prefix: str) -> None:
        for key, value in nested.items():
            if isinstance(value, Mapping):
                take(value, f"{prefix}{key}.")
                continue
            array = np.asarray(value)
            if array.ndim < 1 or array.dtype.hasobject:
                raise SchemaMismatch(
                    f"column {prefix}{key}: expected an array of numbers [N, ...], got {array.dtype} of shape {list(array.shape)}"
                )
            dtype = array.dtype.newbyteorder("<")
            columns.append(Column(name=f"{prefix}{key}", dtype=dtype.str, shape=array.shape[1:]))

    take(step, "")
    return RowSpec(tuple(columns))


def entries_of(step: Mapping[str, Any], env: Ints, *, environments: int, place: Ints | None = None) -> dict[str, Any]:
    """The entries of environments `env` [K] in columns of all environments.

    Columns that hold only some environments are taken at `place` [K]; None: they hold exactly these.
    """
    chosen: dict[str, Any] = {}
    for name, value in step.items():
        if isinstance(value, Mapping):
            chosen[name] = entries_of(value, env, environments=environments, place=place)
            continue
        at = env if len(value) == environments else place
        if at is None:
            chosen[name] = value
        else:
            chosen[name] = [value[one] for one in at] if isinstance(value, list | tuple) else np.asarray(value)[at]
    return chosen
