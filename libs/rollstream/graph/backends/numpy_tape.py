"""The acting path: an API of a component, run once on arrays that remember what was done to them, then replayed for ever.

    component.act(scope, ...)  --first run-->  [dot(x, w, out=a), add(a, b, out=a2), tanh(a2, out=h), ...]  --replay-->  outputs

Components are pure and shapes are static, so the list of calls is the whole program; every call writes into a buffer
of its own, made once. What is left per act is the NumPy calls themselves: no component tree, no allocation, no
framework.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.mixins import NDArrayOperatorsMixin

from rollstream.errors import ConfigError

__all__ = ["Recorded", "Tape", "view_of"]


class Tape:
    """The program: calls in order, each with its buffers."""

    def __init__(self) -> None:
        self._calls: list[Callable[[], object]] = []

    def __len__(self) -> int:
        return len(self._calls)

    def record(self, function: Callable[..., object], *args: object, **kwargs: object) -> None:
        self._calls.append(functools.partial(function, *args, **kwargs) if args or kwargs else function)

    def run(self) -> None:
        for call in self._calls:
            call()

    def input(self, array: npt.NDArray[Any]) -> Recorded:
        """An array whose contents the program reads anew at each run."""
        return Recorded(array, self)


class Recorded(NDArrayOperatorsMixin):
    """An array that writes each operation on it to its tape. The first run computes as NumPy would."""

    __slots__ = ("array", "tape")

    def __init__(self, array: npt.NDArray[Any], tape: Tape) -> None:
        self.array = array
        self.tape = tape

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.array.dtype

    @property
    def ndim(self) -> int:
        return self.array.ndim

    def __getitem__(self, key: Any) -> Recorded:
        view = self.array[key]
        if view.size and not np.shares_memory(view, self.array):
            raise ConfigError("a component that acts in numpy may slice with ranges and None only; use ops.take or ops.pick")
        return Recorded(view, self.tape)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Recorded:
        arrays = [_plain(value) for value in inputs]
        first = arrays[0]
        if ufunc is np.matmul and method == "__call__" and first.ndim == 2 and arrays[1].ndim == 2:
            out = np.dot(*arrays)
            self.tape.record(np.dot, *arrays, out)
            return Recorded(out, self.tape)
        out = np.asarray(getattr(ufunc, method)(*arrays, **kwargs))
        if method == "__call__":
            self.tape.record(ufunc, *arrays, out=out, **kwargs)
        elif method in ("reduce", "accumulate"):
            axis = arrays[1] if len(arrays) > 1 else kwargs.get("axis", 0)
            self.tape.record(getattr(ufunc, method), first, axis, None, out)
        else:
            raise ConfigError(
                f"numpy acting cannot record {ufunc.__name__}.{method}; use mode 'torch' or other ops in the component"
            )
        return Recorded(out, self.tape)

    def __array_function__(self, function: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Recorded:
        recorder = _RECORDERS.get(function)
        if recorder is None or kwargs:
            name = getattr(function, "__name__", repr(function))
            raise ConfigError(f"numpy acting cannot record numpy.{name}; use mode 'torch' or other ops in the component")
        return Recorded(recorder(self.tape, *args), self.tape)


def view_of(x: Any, view: Callable[[npt.NDArray[Any]], npt.NDArray[Any]]) -> Any:
    """`view(x)`, which looks at the same memory, so that there is nothing to record."""
    return Recorded(view(x.array), x.tape) if isinstance(x, Recorded) else view(x)


def _plain(value: Any) -> Any:
    return value.array if isinstance(value, Recorded) else value


def _reshape(tape: Tape, x: Recorded, shape: tuple[int, ...]) -> npt.NDArray[Any]:
    view: npt.NDArray[Any] = x.array.reshape(shape)
    if not np.shares_memory(view, x.array):  # not contiguous: copy first, then view the copy
        dense = np.ascontiguousarray(x.array)
        tape.record(np.copyto, dense, x.array)
        view = dense.reshape(shape)
    return view


def _concatenate(tape: Tape, parts: list[Any], axis: int) -> npt.NDArray[Any]:
    arrays = [_plain(part) for part in parts]
    out = np.concatenate(arrays, axis)
    tape.record(np.concatenate, arrays, axis, out)
    return out


def _take(tape: Tape, x: Any, index: Any, axis: int) -> npt.NDArray[Any]:
    source, where = _plain(x), _plain(index)
    out: npt.NDArray[Any] = np.take(source, where, axis)
    tape.record(source.take, where, axis, out, "clip")  # "raise" would write through a temporary
    return out


def _argmax(tape: Tape, x: Recorded, axis: int) -> npt.NDArray[Any]:
    out = np.asarray(np.argmax(x.array, axis))
    tape.record(x.array.argmax, axis, out)
    return out


def _where(tape: Tape, condition: Any, x: Any, y: Any) -> npt.NDArray[Any]:
    mask, yes, no = _plain(condition), _plain(x), _plain(y)
    out: npt.NDArray[Any] = np.where(mask, yes, no)
    tape.record(np.copyto, out, no)
    tape.record(np.copyto, out, yes, where=mask)
    return out


_RECORDERS: Mapping[Callable[..., Any], Callable[..., npt.NDArray[Any]]] = {
    np.reshape: _reshape,
    np.concatenate: _concatenate,
    np.take: _take,
    np.argmax: _argmax,
    np.where: _where,
}
