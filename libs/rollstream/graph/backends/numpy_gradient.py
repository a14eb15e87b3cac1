"""The way back through a tape: from a loss to the parameters, as more calls on the same tape (reverse-mode differentiation).

    forward   parameter --linear--> hidden --tanh--> ... --> loss
    backward  gradient <--rule---- cotangent <--rule-- ... <-- 1

Each recorded array that a parameter flows into has a cotangent: the sum of what the rules of its users send. The first that
arrives is written straight into its place (or not copied at all), later ones are added in place. Nothing is computed
for what no parameter flows into: inputs, targets, stopped gradients.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rollstream.errors import ConfigError
from rollstream.graph.backends.numpy_calls import reshape
from rollstream.graph.backends.numpy_rules import RULES
from rollstream.graph.backends.numpy_tape import Made, NDArray, Recorded, Tape

__all__ = ["Backward", "record_gradient"]


@dataclass(slots=True)
class _Cotangent:
    """Attributes:
    owned: may be added to in place; otherwise it is somebody else's array.
    """

    array: NDArray
    owned: bool


def record_gradient(loss: Recorded) -> None:
    """Append the calls that bring the gradient of `loss` [] into the gradient arrays of the parameters it depends on.

    Arrays of parameters on which the loss does not depend are not touched.

    Raises:
        ConfigError: an operation has no rule; names it and what to use instead.
    """
    if loss.made is None:
        return
    backward = Backward(loss.tape)
    backward.pass_on(loss, np.ones(loss.shape, loss.dtype))
    for made in _latest_first(loss.made):
        if made.rule == "parameter":
            continue
        rule = RULES.get(made.rule)
        if rule is None:
            raise ConfigError(f"mode 'numpy' has no gradient of {made.rule}; use mode 'torch' or other ops in the loss")
        cotangent = backward.taken(made)
        if cotangent is not None:
            rule(backward, made, cotangent)


def _latest_first(last: Made) -> list[Made]:
    """All that `last` was made from, users before what they use."""
    found, open_ = {last.number: last}, [last]
    while open_:
        for item in open_.pop().inputs:
            made = _made(item)
            if made is not None and made.number not in found:
                found[made.number] = made
                open_.append(made)
    return [found[number] for number in sorted(found, reverse=True)]


class Backward:
    """What gradient rules work with: sends what they compute to where it belongs."""

    def __init__(self, tape: Tape) -> None:
        self.do = tape.record  # nothing reads a gradient before the first replay
        self._cotangents: dict[int, _Cotangent] = {}

    def taken(self, made: Made) -> NDArray | None:
        """The cotangent, complete because all users have been visited; None when nothing arrived."""
        found = self._cotangents.pop(made.number, None)
        return None if found is None else found.array

    def wants(self, x: object) -> bool:
        """Whether a parameter flows into `x`."""
        return _made(x) is not None

    def give(self, x: object, function: Callable[..., object], *args: NDArray) -> None:
        """`function(*args, out)`, elementwise, is a part of the cotangent of `x`; summed over the axes that were broadcast."""
        made = _made(x)
        if made is None:
            return
        shape = np.broadcast_shapes(*(np.shape(array) for array in args))
        if shape == made.array.shape:
            self.into(x, lambda out: self.do(function, *args, out))
        else:
            full = np.empty(shape, made.array.dtype)
            self.do(function, *args, full)
            self.pass_on(x, full)

    def into(self, x: object, write: Callable[[NDArray], None]) -> None:
        """`write(out)` computes a part of the cotangent of `x` into `out`, of its shape."""
        made = _made(x)
        if made is None:
            return
        known = self._cotangents.get(made.number)
        out = _place(made) if known is None else np.empty_like(made.array, order="C")
        write(out)
        if known is None:
            self._cotangents[made.number] = _Cotangent(out, owned=True)
        else:
            self._add(known, out)

    def pass_on(self, x: object, cotangent: NDArray) -> None:
        """`cotangent`, which nobody changes any more, is a part of that of `x`; summed over the axes that were broadcast."""
        made = _made(x)
        if made is None:
            return
        part = self._summed(cotangent, made.array.shape)
        known = self._cotangents.get(made.number)
        if known is not None:
            self._add(known, part)
        elif made.rule == "parameter":
            self.into(x, lambda out: self.do(np.copyto, out, part))
        else:
            self._cotangents[made.number] = _Cotangent(part, owned=False)

    def into_part(self, x: object, part: Callable[[NDArray], NDArray], cotangent: NDArray) -> None:
        """`cotangent` is that of `part(x)`, a view of `x`; elsewhere it is 0."""
        made = _made(x)
        if made is None:
            return
        known = self._cotangents.get(made.number)
        if known is None:
            out = _place(made)
            self.do(out.fill, 0)
            self.do(np.copyto, part(out), cotangent)
            self._cotangents[made.number] = _Cotangent(out, owned=True)
            return
        if not known.owned:
            own = np.empty_like(made.array, order="C")
            self.do(np.copyto, own, known.array)
            known.array, known.owned = own, True
        self.do(np.add, part(known.array), cotangent, part(known.array))

    def product(self, x: object, left: NDArray, right: NDArray) -> None:
        """`left @ right` (both 2-D) is a part of the cotangent of `x`."""

        def write(out: NDArray) -> None:
            if out.flags.c_contiguous:
                self.do(np.dot, left, right, out)
            else:
                self.do(np.matmul, left, right, out)

        self.into(x, write)

    def dense(self, array: NDArray) -> NDArray:
        """As BLAS takes it without a copy of its own: a contiguous array or the transpose of one."""
        if array.flags.c_contiguous or array.flags.f_contiguous:
            return array
        copy = np.empty(array.shape, array.dtype)
        self.do(np.copyto, copy, array)
        return copy

    def _add(self, known: _Cotangent, part: NDArray) -> None:
        out = known.array if known.owned else np.empty(known.array.shape, known.array.dtype)
        self.do(np.add, known.array, part, out)
        known.array, known.owned = out, True

    def _summed(self, array: NDArray, shape: tuple[int, ...]) -> NDArray:
        if array.shape == shape:
            return array
        out = np.empty(shape, array.dtype)
        lead, size = array.ndim - len(shape), math.prod(shape)
        if size == 1:
            flat = reshape(self.do, array, shape=(array.size,))
            self.do(np.dot, flat, np.ones(array.size, array.dtype), out.reshape(()))
        elif array.shape[lead:] == shape:
            table = reshape(self.do, array, shape=(array.size // size, size))
            self.do(np.dot, np.ones(len(table), array.dtype), table, out.reshape(-1))
        elif array.shape[:-1] == shape[:-1] and shape[-1] == 1:
            table = reshape(self.do, array, shape=(size, array.shape[-1]))
            self.do(np.dot, table, np.ones(array.shape[-1], array.dtype), out.reshape(-1))
        else:
            wide = (1,) * lead + shape
            axes = tuple(place for place, (full, one) in enumerate(zip(array.shape, wide, strict=True)) if full != one)
            self.do(np.add.reduce, array, axes, None, out.reshape(wide), True)
        return out


def _made(x: object) -> Made | None:
    return x.made if isinstance(x, Recorded) else None


def _place(made: Made) -> NDArray:
    """Where the cotangent of this array is written: a parameter's gradient has its place."""
    if made.rule == "parameter":
        gradient: NDArray = made.settings["gradient"]
        return gradient
    return np.empty_like(made.array, order="C")
