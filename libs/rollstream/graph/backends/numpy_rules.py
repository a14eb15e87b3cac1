"""How gradients flow back through each op: what an op's output receives (`g`), its inputs receive by these rules.

    rule(back, made, g)    `made` says how the output was made; `back` takes what is sent to the inputs

Rules of functions of single numbers are in `numpy_slopes`; here are those of matrices, sums and places.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from rollstream.graph.backends.numpy_calls import block_images, inside, reshape
from rollstream.graph.backends.numpy_slopes import SLOPES, Receiver, Rule
from rollstream.graph.backends.numpy_tape import Made, NDArray, plain

__all__ = ["RULES"]


def _where(back: Receiver, made: Made, g: NDArray) -> None:
    """By copies, not products: what was not chosen may be infinite."""
    condition, x, y = made.inputs
    mask = np.broadcast_to(plain(condition), made.array.shape)
    for item, chosen in ((x, True), (y, False)):
        if back.wants(item):
            part, where = np.empty_like(made.array), mask
            if not chosen:
                where = np.empty(mask.shape, np.bool_)
                back.do(np.logical_not, mask, where)
            back.do(part.fill, 0)
            back.do(np.copyto, part, g, where=where)
            back.pass_on(item, part)


def _cast(back: Receiver, made: Made, g: NDArray) -> None:
    x = made.inputs[0]
    back.into(x, lambda out: back.do(np.copyto, out, g))


def _reshape(back: Receiver, made: Made, g: NDArray) -> None:
    x = made.inputs[0]
    back.pass_on(x, reshape(back.do, g, shape=x.shape))


def _transpose(back: Receiver, made: Made, g: NDArray) -> None:
    inverse = [int(place) for place in np.argsort(made.settings["axes"])]
    back.pass_on(made.inputs[0], g.transpose(inverse))


def _view(back: Receiver, made: Made, g: NDArray) -> None:
    x, view = made.inputs[0], made.settings["view"]
    if g.size == math.prod(x.shape) and not _reverses(x, made):  # only axes of length 1 came or went
        back.pass_on(x, reshape(back.do, g, shape=x.shape))
    else:
        back.into_part(x, view, g)


def _reverses(x: Any, made: Made) -> bool:
    """A slice with a negative step."""
    return any(step < 0 for step in made.array.strides) or any(step < 0 for step in x.array.strides)


def _concatenate(back: Receiver, made: Made, g: NDArray) -> None:
    axis, start = made.settings["axis"] % g.ndim, 0
    for part in made.inputs:
        end = start + plain(part).shape[axis]
        back.pass_on(part, g[(slice(None),) * axis + (slice(start, end),)])
        start = end


def _stack(back: Receiver, made: Made, g: NDArray) -> None:
    for number, part in enumerate(made.inputs):
        back.pass_on(part, g[(slice(None),) * made.settings["axis"] + (number, Ellipsis)])


def _take(back: Receiver, made: Made, g: NDArray) -> None:
    index = made.settings["index"]

    def write(out: NDArray) -> None:
        back.do(out.fill, 0)
        back.do(np.add.at, np.moveaxis(out, -1, 0), index, np.moveaxis(g, range(g.ndim - index.ndim, g.ndim), range(index.ndim)))

    back.into(made.inputs[0], write)


def _rows(back: Receiver, made: Made, g: NDArray) -> None:
    table, index = made.inputs

    def write(out: NDArray) -> None:
        back.do(out.fill, 0)
        back.do(np.add.at, out, plain(index), g)

    back.into(table, write)


def _gather(back: Receiver, made: Made, g: NDArray) -> None:
    """Each row has one place, so nothing meets."""
    x, places = made.inputs

    def write(out: NDArray) -> None:
        back.do(out.fill, 0)
        back.do(out.reshape(-1).__setitem__, plain(places), g)

    back.into(x, write)


def _linear(back: Receiver, made: Made, g: NDArray) -> None:
    x, weight, bias = made.inputs
    g = back.dense(g)
    back.into(bias, lambda out: back.do(np.dot, np.ones(len(g), g.dtype), g, out))
    back.product(weight, plain(x).T, g)
    back.product(x, g, plain(weight).T)


def _matmul(back: Receiver, made: Made, g: NDArray) -> None:
    x, y = made.inputs
    left, right = plain(x), plain(y)
    if left.ndim == right.ndim == 2:
        g = back.dense(g)
        back.product(x, g, right.T)
        back.product(y, left.T, g)
        return
    for item, first, second in ((x, g, right.swapaxes(-1, -2)), (y, left.swapaxes(-1, -2), g)):
        if back.wants(item):
            lead = np.broadcast_shapes(first.shape[:-2], second.shape[:-2])
            part = np.empty((*lead, first.shape[-2], second.shape[-1]), g.dtype)
            back.do(np.matmul, first, second, part)
            back.pass_on(item, part)


def _dot(back: Receiver, made: Made, g: NDArray) -> None:
    x, y = made.inputs
    back.give(x, np.multiply, g[..., None], plain(y))
    if back.wants(y):
        flat = back.dense(reshape(back.do, g, shape=(g.size,)))
        rows = reshape(back.do, plain(x), shape=(g.size, plain(y).size))
        back.into(y, lambda out: back.do(np.dot, flat, rows, out))


def _conv(back: Receiver, made: Made, g: NDArray) -> None:
    """To the images: each place of a kernel lies on a grid of the image; what those of all places receive is added up."""
    x, kernels, bias = made.inputs
    patches, stride = made.settings["patches"], made.settings["stride"]
    flat = reshape(back.do, g.transpose(0, 2, 3, 1), shape=(-1, g.shape[1]))
    back.into(bias, lambda out: back.do(np.dot, np.ones(len(flat), g.dtype), flat, out))
    if back.wants(kernels):
        part = np.empty(plain(kernels).shape[::-1], g.dtype)  # transposed: so it is faster, and so the weight lies
        back.do(np.dot, flat.T, patches.reshape(len(flat), -1), part)
        back.pass_on(kernels, part.T)
    if not back.wants(x):
        return
    (batch, channels, *size), (down, across, *kernel) = x.shape, patches.shape[1:5]
    image = np.empty((batch, *size, channels), g.dtype)
    step = block_images(down * across, len(plain(kernels)))
    room = np.empty((min(step, batch), *patches.shape[1:]), g.dtype)
    back.do(image.fill, 0)
    for start in range(0, batch, step):
        some = room[: min(step, batch - start)]
        rows = slice(start * down * across, (start + len(some)) * down * across)
        back.do(np.dot, flat[rows], plain(kernels).T, some.reshape(-1, len(plain(kernels))))
        for row, column in itertools.product(*map(range, kernel)):
            lit = image[start : start + len(some), row::stride, column::stride][:, :down, :across]
            back.do(np.add, lit, some[:, :, :, row, column], lit)
    back.pass_on(x, image.transpose(0, 3, 1, 2))


def _pad(back: Receiver, made: Made, g: NDArray) -> None:
    x = made.inputs[0]
    back.pass_on(x, g[inside(x.shape, made.settings["widths"])])


def _sum(back: Receiver, made: Made, g: NDArray) -> None:
    x = made.inputs[0]
    back.pass_on(x, np.broadcast_to(_widened(g, made), x.shape))


def _max(back: Receiver, made: Made, g: NDArray) -> None:
    """Shared equally among the highest."""
    x = made.inputs[0]
    highest, count = np.empty(x.shape, np.bool_), np.empty(_widened(g, made).shape, g.dtype)
    share = np.empty(count.shape, g.dtype)
    back.do(np.equal, plain(x), _widened(made.array, made), highest)
    back.do(np.add.reduce, highest, made.settings["axis"], g.dtype, count, True)
    back.do(np.divide, _widened(g, made), count, share)
    back.give(x, np.multiply, share, highest)


def _widened(array: NDArray, made: Made) -> NDArray:
    """With the axis that was reduced, of length 1."""
    axis, keepdims = made.settings["axis"], made.settings["keepdims"]
    if keepdims:
        return array
    return array.reshape((1,) * made.inputs[0].ndim) if axis is None else np.expand_dims(array, axis)


def _cumsum(back: Receiver, made: Made, g: NDArray) -> None:
    back.into(made.inputs[0], lambda out: back.do(np.add.accumulate, g[..., ::-1], -1, None, out[..., ::-1]))


def _log_softmax(back: Receiver, made: Made, g: NDArray) -> None:
    """g - softmax(x) sum(g)."""
    width = g.shape[-1]
    dense = reshape(back.do, g, shape=(g.size // width, width))
    sums = np.empty(len(dense), g.dtype)
    back.do(np.dot, dense, np.ones(width, g.dtype), sums)

    def write(out: NDArray) -> None:
        back.do(np.exp, made.array, out)
        back.do(np.multiply, out, sums.reshape(*g.shape[:-1], 1), out)
        back.do(np.subtract, g, out, out)

    back.into(made.inputs[0], write)


RULES: Mapping[str, Rule] = {
    **SLOPES,
    "cast": _cast,
    "concatenate": _concatenate,
    "conv": _conv,
    "cumsum": _cumsum,
    "dot": _dot,
    "gather": _gather,
    "linear": _linear,
    "log_softmax": _log_softmax,
    "matmul": _matmul,
    "max": _max,
    "pad": _pad,
    "reshape": _reshape,
    "rows": _rows,
    "stack": _stack,
    "sum": _sum,
    "take": _take,
    "transpose": _transpose,
    "view": _view,
    "where": _where,
}
