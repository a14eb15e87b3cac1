"""How gradients flow back through functions of single numbers: the first half of `numpy_rules`, which says what a rule is.

Signs and roundings send nothing on. Where two arguments are equally high, both receive half, as in torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, TypeAlias

import numpy as np

from rollstream.graph.backends.numpy_tape import Do, Made, NDArray, plain

__all__ = ["SLOPES", "Receiver", "Rule"]


class Receiver(Protocol):
    """What `numpy_gradient.Backward` offers to rules."""

    do: Do

    def wants(self, x: object) -> bool: ...
    def give(self, x: object, function: Callable[..., object], *args: NDArray) -> None: ...
    def into(self, x: object, write: Callable[[NDArray], None]) -> None: ...
    def pass_on(self, x: object, cotangent: NDArray) -> None: ...
    def into_part(self, x: object, part: Callable[[NDArray], NDArray], cotangent: NDArray) -> None: ...
    def product(self, x: object, left: NDArray, right: NDArray) -> None: ...
    def dense(self, array: NDArray) -> NDArray: ...


Rule: TypeAlias = Callable[[Receiver, Made, NDArray], None]


def _nothing(back: Receiver, made: Made, g: NDArray) -> None:
    """Constant between its steps."""


def _positive(back: Receiver, made: Made, g: NDArray) -> None:
    back.pass_on(made.inputs[0], g)


def _add(back: Receiver, made: Made, g: NDArray) -> None:
    back.pass_on(made.inputs[0], g)
    back.pass_on(made.inputs[1], g)


def _subtract(back: Receiver, made: Made, g: NDArray) -> None:
    back.pass_on(made.inputs[0], g)
    back.give(made.inputs[1], np.negative, g)


def _multiply(back: Receiver, made: Made, g: NDArray) -> None:
    x, y = made.inputs
    if x is y:
        _square(back, made, g)
        return
    back.give(x, np.multiply, g, plain(y))
    back.give(y, np.multiply, g, plain(x))


def _square(back: Receiver, made: Made, g: NDArray) -> None:
    x = made.inputs[0]

    def write(out: NDArray) -> None:
        back.do(np.multiply, g, plain(x), out)
        back.do(np.add, out, out, out)

    back.into(x, write)


def _divide(back: Receiver, made: Made, g: NDArray) -> None:
    x, y = made.inputs
    back.give(x, np.divide, g, plain(y))
    if back.wants(y):
        part = np.empty_like(made.array)
        back.do(np.multiply, g, made.array, part)
        back.do(np.negative, part, part)
        back.give(y, np.divide, part, plain(y))


def _power(back: Receiver, made: Made, g: NDArray) -> None:
    x, y = made.inputs
    if back.wants(x):
        slope = np.empty_like(made.array)
        less_one = np.empty_like(plain(y))
        back.do(np.subtract, plain(y), np.ones((), less_one.dtype), less_one)
        back.do(np.power, plain(x), less_one, slope)
        back.do(np.multiply, slope, plain(y), slope)
        back.give(x, np.multiply, g, slope)
    if back.wants(y):
        slope = np.empty_like(made.array)
        back.do(np.log, plain(x), slope)
        back.do(np.multiply, slope, made.array, slope)
        back.give(y, np.multiply, g, slope)


def _negative(back: Receiver, made: Made, g: NDArray) -> None:
    back.give(made.inputs[0], np.negative, g)


def _exp(back: Receiver, made: Made, g: NDArray) -> None:
    back.give(made.inputs[0], np.multiply, g, made.array)


def _expm1(back: Receiver, made: Made, g: NDArray) -> None:
    def write(out: NDArray) -> None:
        back.do(np.multiply, g, made.array, out)
        back.do(np.add, out, g, out)

    back.into(made.inputs[0], write)


def _log(back: Receiver, made: Made, g: NDArray) -> None:
    back.give(made.inputs[0], np.divide, g, plain(made.inputs[0]))


def _sqrt(back: Receiver, made: Made, g: NDArray) -> None:
    def write(out: NDArray) -> None:
        back.do(np.divide, g, made.array, out)
        back.do(np.multiply, out, np.asarray(0.5, out.dtype), out)

    back.into(made.inputs[0], write)


def _absolute(back: Receiver, made: Made, g: NDArray) -> None:
    def write(out: NDArray) -> None:
        back.do(np.sign, plain(made.inputs[0]), out)
        back.do(np.multiply, out, g, out)

    back.into(made.inputs[0], write)


def _tanh(back: Receiver, made: Made, g: NDArray) -> None:
    y = made.array

    def write(out: NDArray) -> None:
        back.do(np.multiply, y, y, out)
        back.do(np.subtract, np.ones((), out.dtype), out, out)
        back.do(np.multiply, out, g, out)

    back.into(made.inputs[0], write)


def _relu(back: Receiver, made: Made, g: NDArray) -> None:
    above = np.empty(made.array.shape, np.bool_)
    back.do(np.greater, made.array, np.zeros((), made.array.dtype), above)
    back.give(made.inputs[0], np.multiply, g, above)


def _sigmoid(back: Receiver, made: Made, g: NDArray) -> None:
    y = made.array

    def write(out: NDArray) -> None:
        back.do(np.subtract, np.ones((), out.dtype), y, out)
        back.do(np.multiply, out, y, out)
        back.do(np.multiply, out, g, out)

    back.into(made.inputs[0], write)


def _softplus(back: Receiver, made: Made, g: NDArray) -> None:
    """The slope is sigmoid(x) = exp(x - softplus(x))."""

    def write(out: NDArray) -> None:
        back.do(np.subtract, plain(made.inputs[0]), made.array, out)
        back.do(np.exp, out, out)
        back.do(np.multiply, out, g, out)

    back.into(made.inputs[0], write)


def _extreme(winner: float) -> Rule:
    """Of minimum (-1) and maximum (1): 1 for the one that won, a half when equal."""

    def rule(back: Receiver, made: Made, g: NDArray) -> None:
        for x, y in (made.inputs, made.inputs[::-1]):
            if back.wants(x):
                share = np.empty_like(made.array)
                first, second = (x, y) if winner > 0 else (y, x)
                back.do(np.subtract, plain(first), plain(second), share)
                back.do(np.heaviside, share, np.asarray(0.5, share.dtype), share)
                back.give(x, np.multiply, g, share)

    return rule


def _clip(back: Receiver, made: Made, g: NDArray) -> None:
    """Also at the bounds themselves: what the clipping left as it was has slope 1."""
    x = made.inputs[0]
    kept = np.empty(made.array.shape, np.bool_)
    back.do(np.equal, made.array, plain(x), kept)
    back.give(x, np.multiply, g, kept)


SLOPES: Mapping[str, Rule] = {
    "absolute": _absolute,
    "add": _add,
    "clip": _clip,
    "divide": _divide,
    "exp": _exp,
    "expm1": _expm1,
    "floor": _nothing,
    "log": _log,
    "maximum": _extreme(1.0),
    "minimum": _extreme(-1.0),
    "multiply": _multiply,
    "negative": _negative,
    "positive": _positive,
    "power": _power,
    "relu": _relu,
    "sigmoid": _sigmoid,
    "sign": _nothing,
    "softplus": _softplus,
    "sqrt": _sqrt,
    "square": _square,
    "subtract": _subtract,
    "tanh": _tanh,
}
