"""The highest value of each window of an image."""

from __future__ import annotations

from dataclasses import dataclass

from rollstream.graph.components.conv import Padding, same_widths, windows
from rollstream.graph.components.fit import require_shape
from rollstream.graph.ops import Array, Ops
from rollstream.graph.scope import Scope, api

__all__ = ["MaxPool"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MaxPool:
    """Maximum over windows of `kernel` by `kernel`; with `same` padding, what is outside of the image never wins."""

    kernel: int
    stride: int
    padding: Padding = "valid"

    @api
    def output(self, scope: Scope, x: Array) -> Array:
        """[B, C, H, W] -> [B, C, H', W'], see `conv.windows`."""
        require_shape(scope, x, ("B", "C", "H", "W"), where="MaxPool.output")
        return self._along(scope.ops, self._along(scope.ops, x, 2), 3)

    def _along(self, ops: Ops, x: Array, axis: int) -> Array:
        count = windows(x.shape[axis], kernel=self.kernel, stride=self.stride, padding=self.padding)
        if self.padding == "same":
            x = _edges_repeated(ops, x, axis, *same_widths(x.shape[axis], kernel=self.kernel, stride=self.stride))
        spans = [slice(start, start + (count - 1) * self.stride + 1, self.stride) for start in range(self.kernel)]
        highest = x[_at(axis, spans[0])]
        for span in spans[1:]:
            highest = ops.maximum(highest, x[_at(axis, span)])
        return highest


def _edges_repeated(ops: Ops, x: Array, axis: int, before: int, after: int) -> Array:
    """Every window that reaches over the edge holds the edge too, so repeating it changes no maximum."""
    first, last = x[_at(axis, slice(0, 1))], x[_at(axis, slice(x.shape[axis] - 1, x.shape[axis]))]
    parts = [first] * before + [x] + [last] * after
    return x if len(parts) == 1 else ops.concatenate(parts, axis=axis)


def _at(axis: int, span: slice) -> tuple[slice, ...]:
    return (*(slice(None),) * axis, span)
