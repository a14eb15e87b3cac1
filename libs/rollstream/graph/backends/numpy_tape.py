"""What NumPy does for an API, written down once and then replayed for ever.

    component.act(scope, ...)  --first run-->  [dot(x, w, a), add(a, b, a), tanh(a, h), ...]  --replay-->  outputs

Components are pure and shapes are static, so the list of calls is the whole program; every call writes into a buffer
of its own, made once. What is left per act is the NumPy calls themselves: no component tree, no allocation, no
framework. What a parameter that learns flows into remembers how it was made, so that `numpy_gradient` finds the way back.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from numpy.lib.mixins import NDArrayOperatorsMixin

from rollstream.graph.unsupported import UnsupportedOp

__all__ = ["Do", "Made", "NDArray", "Recorded", "Tape", "apply", "elementwise", "fitted", "moves", "plain"]

NDArray: TypeAlias = npt.NDArray[Any]

Do: TypeAlias = Callable[..., None]
"""`do(function, *arguments)`: call it, and (on a tape) do so again at each replay. `out` buffers are arguments."""

NAMED_OUT = (np.minimum, np.maximum)
"""NumPy wants their `out` by name; and with a number it takes three times as long as with an array of it."""

BY_METHOD: Mapping[Callable[..., object], Callable[..., tuple[Callable[..., object], tuple[Any, ...]]]] = {
    np.dot: lambda x, y, out: (x.dot, (y, out)),
    np.copyto: lambda out, x, casting=None: (out.__setitem__, (Ellipsis, x)),
}
"""The same call as a method of an array: a fifth of a microsecond less, since nobody asks whether an argument overrides it."""


class Tape:
    """The program: calls in order, each with its buffers.

    Attributes:
        dtype: of numbers that come from no array (a Python float times an integer column).
    """

    def __init__(self, *, dtype: type[np.floating[Any]] = np.float32) -> None:
        self.dtype = np.dtype(dtype)
        self._calls: list[Callable[[], object]] = []
        self._steps = 0

    def __len__(self) -> int:
        return len(self._calls)

    def do(self, function: Callable[..., object], *args: object, **kwargs: object) -> None:
        """Call now and at each replay."""
        function(*args, **kwargs)
        self.record(function, *args, **kwargs)

    def record(self, function: Callable[..., object], *args: Any, **kwargs: object) -> None:
        """Call at each replay only."""
        lean = BY_METHOD.get(function) if not kwargs else None
        if lean is not None:
            function, args = lean(*args)
        self._calls.append(functools.partial(function, *args, **kwargs) if args or kwargs else function)

    def run(self) -> None:
        for call in self._calls:
            call()

    def input(self, array: NDArray) -> Recorded:
        """An array whose contents the program reads anew at each run; no gradient flows into it."""
        return Recorded(array, self)

    def parameter(self, array: NDArray, gradient: NDArray) -> Recorded:
        """The same for an array that learns; the backward program writes into `gradient`."""
        return Recorded(array, self, self._made("parameter", array, (), {"gradient": gradient}))

    def output(self, array: NDArray, rule: str, inputs: Sequence[Any], settings: Mapping[str, Any]) -> Recorded:
        """What a call of this tape wrote."""
        moved = array.dtype.kind == "f" and any(moves(item) for item in inputs)
        return Recorded(array, self, self._made(rule, array, tuple(inputs), settings) if moved else None)

    def _made(self, rule: str, array: NDArray, inputs: tuple[Any, ...], settings: Mapping[str, Any]) -> Made:
        self._steps += 1
        return Made(rule=rule, number=self._steps, array=array, inputs=inputs, settings=settings)


@dataclass(frozen=True, slots=True, eq=False)
class Made:
    """How an array that parameters flow into was made: its place in the order of the tape, and what its gradient rule needs."""

    rule: str
    number: int
    array: NDArray
    inputs: tuple[Any, ...]
    settings: Mapping[str, Any]


class Recorded(NDArrayOperatorsMixin):
    """An array that writes each operation on it to its tape. The first run computes as NumPy would.

    Attributes:
        made: None where no parameter flows in that learns.
    """

    __slots__ = ("array", "made", "tape")

    def __init__(self, array: NDArray, tape: Tape, made: Made | None = None) -> None:
        self.array = array
        self.tape = tape
        self.made = made

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.array.dtype

    @property
    def ndim(self) -> int:
        return self.array.ndim

    def __len__(self) -> int:
        return len(self.array)

    def __bool__(self) -> bool:
        raise UnsupportedOp(
            "a component cannot branch on what an array contains: a recorded program has no branches; use ops.where"
        )

    def __float__(self) -> float:
        raise UnsupportedOp(
            "a component cannot take a number out of an array: a recorded program computes it anew; keep it an array"
        )

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and hasattr(np.ndarray, name):
            raise UnsupportedOp(f"mode 'numpy' cannot record the array's own {name}; use the function of ops")
        raise AttributeError(f"an array in mode 'numpy' has no attribute {name!r}; use the functions of ops")

    def __getitem__(self, key: Any) -> Recorded:
        keys = key if isinstance(key, tuple) else (key,)
        if not all(part is None or part is Ellipsis or isinstance(part, (int, np.integer, slice)) for part in keys):
            raise UnsupportedOp(
                "a component that runs in numpy may slice with ranges, whole numbers and None only; use ops.take or ops.pick"
            )
        whole = keys if any(part is Ellipsis for part in keys) else (*keys, Ellipsis)  # with an ellipsis it is always a view
        view = operator.itemgetter(whole)
        return self.tape.output(view(self.array), "view", (self,), {"view": view})

    def __pow__(self, exponent: Any) -> Recorded:
        simple = {1: np.positive, 2: np.square, 0.5: np.sqrt}.get(exponent) if isinstance(exponent, (int, float)) else None
        found: Recorded = elementwise(np.power, self, exponent) if simple is None else elementwise(simple, self)
        return found

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Recorded:
        if method != "__call__" or kwargs or ufunc.nout != 1 or ufunc.signature is not None:
            name = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
            raise UnsupportedOp(f"mode 'numpy' cannot record {name}; use mode 'torch' or other ops in the component")
        found: Recorded = elementwise(ufunc, *inputs)
        return found

    def __array_function__(self, function: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Recorded:
        name = getattr(function, "__name__", repr(function))
        raise UnsupportedOp(f"mode 'numpy' cannot record numpy.{name}; use mode 'torch' or other ops in the component")


def plain(value: Any) -> Any:
    """The array itself."""
    return value.array if isinstance(value, Recorded) else value


def moves(value: Any) -> bool:
    """Whether a parameter that learns flows into it."""
    return isinstance(value, Recorded) and value.made is not None


def apply(rule: str, function: Callable[..., NDArray], *inputs: Any, **settings: Any) -> Any:
    """`function(do, *arrays, **settings)`, which makes its buffers and computes by `do`; recorded when an input is.

    `rule` names how gradients flow back through it, see `numpy_rules`.
    """
    tape = _tape_of(inputs)
    if tape is None:
        return function(_now, *inputs, **settings)
    operands = _operands(tape, inputs)
    return tape.output(function(tape.do, *map(plain, operands), **settings), rule, operands, settings)


def elementwise(ufunc: np.ufunc, *inputs: Any) -> Any:
    """`ufunc(*inputs)`; numbers of Python take the dtype of the arrays that they meet, as in torch and jax."""
    tape = _tape_of(inputs)
    if tape is None:
        return ufunc(*inputs)
    operands = _operands(tape, inputs)
    arrays = [plain(item) for item in operands]
    out = np.asarray(ufunc(*arrays))
    if out.dtype == np.float64 and all(np.asarray(array).dtype != np.float64 for array in arrays):
        out = out.astype(tape.dtype)  # integers divided
    lean = fitted(arrays, out)
    if ufunc in NAMED_OUT:
        whole = [
            array if isinstance(item, Recorded) else np.full_like(out, array) for item, array in zip(operands, lean, strict=True)
        ]
        tape.record(ufunc, *whole, out=out)
    else:
        tape.record(ufunc, *lean, out)
    return tape.output(out, ufunc.__name__, operands, {})


def fitted(arrays: Sequence[NDArray], out: NDArray) -> list[NDArray]:
    """The same operands as views that NumPy need not broadcast, where there are such: a third of the time of a small call."""
    return [_fit(array, out) for array in arrays]


def _fit(array: NDArray, out: NDArray) -> NDArray:
    if array.shape == out.shape or not array.flags.c_contiguous:
        return array
    if array.size == out.size:
        return array.reshape(out.shape)
    return array.reshape(()) if array.size == 1 else array


def _operands(tape: Tape, inputs: tuple[Any, ...]) -> list[Any]:
    numbers = [isinstance(item, (bool, int, float)) for item in inputs]
    if not any(numbers):
        return list(inputs)
    met = np.result_type(*(plain(item) for item, number in zip(inputs, numbers, strict=True) if not number))
    return [_as_array(item, met, tape) if number else item for item, number in zip(inputs, numbers, strict=True)]


def _as_array(number: float, met: np.dtype[Any], tape: Tape) -> NDArray:
    if met.kind == "f" or (met.kind in "iu" and not isinstance(number, float)):
        return np.asarray(number, met)
    return np.asarray(number, tape.dtype) if isinstance(number, float) else np.asarray(number)


def _tape_of(inputs: tuple[Any, ...]) -> Tape | None:
    for item in inputs:
        if isinstance(item, Recorded):
            return item.tape
    return None


def _now(function: Callable[..., object], *args: object, **kwargs: object) -> None:
    function(*args, **kwargs)
