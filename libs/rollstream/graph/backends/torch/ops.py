"""The torch op table; see `rollstream.graph.ops.Ops`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

__all__ = ["TorchOps"]


class TorchOps:
    """Tensors in, tensors out.

    Attributes:
        device: where constants are made; the caller's tensors lie there too.
        mixed: matrix products and convolutions in bfloat16; what they give, and everything else, stays float32.
    """

    def __init__(self, *, device: str = "cpu", mixed: bool = False) -> None:
        self.device = device
        self.mixed = mixed

    def to_float(self, x: Tensor) -> Tensor:
        return x if x.dtype == torch.float32 else x.to(torch.float32)

    def to_int(self, x: Tensor) -> Tensor:
        return x.to(torch.int64)

    def constant(self, value: npt.NDArray[Any]) -> Tensor:
        return torch.from_numpy(value).to(self.device)

    def zeros_like(self, x: Tensor) -> Tensor:
        return torch.zeros_like(x)

    def ones_like(self, x: Tensor) -> Tensor:
        return torch.ones_like(x)

    def reshape(self, x: Tensor, shape: tuple[int, ...]) -> Tensor:
        return x.reshape(shape)

    def transpose(self, x: Tensor, axes: tuple[int, ...]) -> Tensor:
        return x.permute(axes)

    def concatenate(self, parts: Sequence[Tensor], *, axis: int = -1) -> Tensor:
        return torch.cat(list(parts), axis)

    def stack(self, parts: Sequence[Tensor], *, axis: int = 0) -> Tensor:
        return torch.stack(list(parts), axis)

    def take(self, x: Tensor, index: npt.NDArray[np.int64]) -> Tensor:
        return x.index_select(-1, torch.from_numpy(index).to(self.device))

    def linear(self, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        if self.mixed:
            return torch.addmm(_half(bias), _half(x), _half(weight)).to(torch.float32)
        return torch.addmm(bias, x, weight)

    def rows(self, table: Tensor, index: Tensor) -> Tensor:
        return table.index_select(0, index)

    def matmul(self, x: Tensor, y: Tensor) -> Tensor:
        if self.mixed:
            return torch.matmul(_half(x), _half(y)).to(torch.float32)
        return torch.matmul(x, y)

    def conv(self, x: Tensor, weight: Tensor, bias: Tensor, *, stride: int) -> Tensor:
        if self.mixed:
            return functional.conv2d(_half(x), _half(weight), _half(bias), stride).to(torch.float32)
        return functional.conv2d(x, weight, bias, stride)

    def pad(self, x: Tensor, widths: tuple[tuple[int, int], ...]) -> Tensor:
        return functional.pad(x, [width for pair in reversed(widths) for width in pair])

    def dot(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.matmul(x, y)

    def tanh(self, x: Tensor) -> Tensor:
        return torch.tanh(x)

    def relu(self, x: Tensor) -> Tensor:
        return torch.relu(x)

    def sigmoid(self, x: Tensor) -> Tensor:
        return torch.sigmoid(x)

    def softplus(self, x: Tensor) -> Tensor:
        return functional.softplus(x)

    def exp(self, x: Tensor) -> Tensor:
        return torch.exp(x)

    def expm1(self, x: Tensor) -> Tensor:
        return torch.expm1(x)

    def log(self, x: Tensor) -> Tensor:
        return torch.log(x)

    def sqrt(self, x: Tensor) -> Tensor:
        return torch.sqrt(x)

    def sign(self, x: Tensor) -> Tensor:
        return torch.sign(x)

    def floor(self, x: Tensor) -> Tensor:
        return torch.floor(x)

    def abs(self, x: Tensor) -> Tensor:
        return torch.abs(x)

    def isfinite(self, x: Tensor) -> Tensor:
        return torch.isfinite(x)

    def minimum(self, x: Tensor, y: Any) -> Tensor:
        return torch.minimum(x, y) if isinstance(y, Tensor) else torch.clamp(x, max=y)

    def maximum(self, x: Tensor, y: Any) -> Tensor:
        return torch.maximum(x, y) if isinstance(y, Tensor) else torch.clamp(x, min=y)

    def clip(self, x: Tensor, low: Any, high: Any) -> Tensor:
        if isinstance(low, Tensor) == isinstance(high, Tensor):
            return torch.clamp(x, low, high)
        return self.minimum(self.maximum(x, low), high)

    def where(self, condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
        return torch.where(condition, x, y)

    def sum(self, x: Tensor, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
        return (
            torch.sum(x) if axis is None and not keepdims else torch.sum(x, _axes(x) if axis is None else axis, keepdim=keepdims)
        )

    def mean(self, x: Tensor, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
        return (
            torch.mean(x)
            if axis is None and not keepdims
            else torch.mean(x, _axes(x) if axis is None else axis, keepdim=keepdims)
        )

    def max(self, x: Tensor, *, axis: int = -1, keepdims: bool = False) -> Tensor:
        return x.amax(axis, keepdim=keepdims)

    def argmax(self, x: Tensor) -> Tensor:
        return x.argmax(-1)

    def cumsum(self, x: Tensor) -> Tensor:
        return x.cumsum(-1)

    def pick(self, x: Tensor, index: Tensor) -> Tensor:
        return x.gather(-1, index.unsqueeze(-1)).squeeze(-1)

    def log_softmax(self, x: Tensor) -> Tensor:
        return torch.log_softmax(x, -1)

    def stop_gradient(self, x: Tensor) -> Tensor:
        return x.detach()

    def scan(
        self, step: Callable[..., tuple[tuple[Any, ...], Any]], initial: tuple[Any, ...], arrays: Sequence[Tensor]
    ) -> tuple[tuple[Any, ...], Tensor]:
        carry, found = initial, []
        for inputs in zip(*(array.unbind(0) for array in arrays), strict=True):  # `unbind`: one gradient for all t, not T of [T]
            carry, y = step(carry, *inputs)
            found.append(y)
        return carry, torch.stack(found)

    def scan_reverse(self, step: Callable[..., Any], initial: Tensor, arrays: Sequence[Tensor]) -> Tensor:
        carry: Any = initial
        scanned: list[Tensor] = []
        for inputs in zip(*(reversed(array.unbind(0)) for array in arrays), strict=True):
            carry = step(carry, *inputs)
            scanned.append(carry)
        return torch.stack(scanned[::-1])


def _axes(x: Tensor) -> list[int]:
    return list(range(x.dim()))


def _half(x: Tensor) -> Tensor:
    return x.to(torch.bfloat16)
