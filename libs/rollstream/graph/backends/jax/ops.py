"""The JAX op table; see `rollstream.graph.ops.Ops`.

It is traced with 64-bit types allowed (see `program`), so integers are int64 where NumPy's are; what is made here from
float32 stays float32. Where functions of JAX differ from those of the other tables, the way of the others is kept: gradients
of `relu` and `clip` at their edges are those of torch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax import Array, lax

__all__ = ["JaxOps"]


class JaxOps:
    """Traced arrays in, traced arrays out."""

    def to_float(self, x: Array) -> Array:
        return x if x.dtype == jnp.float32 else x.astype(jnp.float32)

    def to_int(self, x: Array) -> Array:
        return x if x.dtype == jnp.int64 else x.astype(jnp.int64)

    def constant(self, value: npt.NDArray[Any]) -> Array:
        return jnp.asarray(value)

    def zeros_like(self, x: Array) -> Array:
        return jnp.zeros(x.shape, x.dtype)

    def ones_like(self, x: Array) -> Array:
        return jnp.ones(x.shape, x.dtype)

    def reshape(self, x: Array, shape: tuple[int, ...]) -> Array:
        return jnp.reshape(x, shape)

    def transpose(self, x: Array, axes: tuple[int, ...]) -> Array:
        return jnp.transpose(x, axes)

    def concatenate(self, parts: Sequence[Array], *, axis: int = -1) -> Array:
        return jnp.concatenate(list(parts), axis)

    def stack(self, parts: Sequence[Array], *, axis: int = 0) -> Array:
        return jnp.stack(list(parts), axis)

    def take(self, x: Array, index: npt.NDArray[np.int64]) -> Array:
        return jnp.take(x, index, axis=-1, mode="clip")

    def rows(self, table: Array, index: Array) -> Array:
        return jnp.take(table, index, axis=0, mode="clip")

    def linear(self, x: Array, weight: Array, bias: Array) -> Array:
        return jnp.matmul(x, weight) + bias

    def matmul(self, x: Array, y: Array) -> Array:
        return jnp.matmul(x, y)

    def conv(self, x: Array, weight: Array, bias: Array, *, stride: int) -> Array:
        y = lax.conv_general_dilated(x, weight, (stride, stride), "VALID", dimension_numbers=("NCHW", "OIHW", "NCHW"))
        return y + bias[:, None, None]

    def pad(self, x: Array, widths: tuple[tuple[int, int], ...]) -> Array:
        return jnp.pad(x, widths)

    def dot(self, x: Array, y: Array) -> Array:
        return jnp.matmul(x, y)

    def tanh(self, x: Array) -> Array:
        return jnp.tanh(x)

    def relu(self, x: Array) -> Array:
        return jax.nn.relu(x)

    def sigmoid(self, x: Array) -> Array:
        return jax.nn.sigmoid(x)

    def softplus(self, x: Array) -> Array:
        return jax.nn.softplus(x)

    def exp(self, x: Array) -> Array:
        return jnp.exp(x)

    def expm1(self, x: Array) -> Array:
        return jnp.expm1(x)

    def log(self, x: Array) -> Array:
        return jnp.log(x)

    def sqrt(self, x: Array) -> Array:
        return jnp.sqrt(x)

    def sign(self, x: Array) -> Array:
        return jnp.sign(x)

    def floor(self, x: Array) -> Array:
        return jnp.floor(x)

    def abs(self, x: Array) -> Array:
        return jnp.abs(x)

    def isfinite(self, x: Array) -> Array:
        return jnp.isfinite(x)

    def minimum(self, x: Array, y: Array) -> Array:
        return jnp.minimum(x, y)

    def maximum(self, x: Array, y: Array) -> Array:
        return jnp.maximum(x, y)

    def clip(self, x: Array, low: Array | float, high: Array | float) -> Array:
        return jnp.where(x < low, low, jnp.where(x > high, high, x))

    def where(self, condition: Array, x: Array, y: Array) -> Array:
        return jnp.where(condition, x, y)

    def sum(self, x: Array, *, axis: int | None = None, keepdims: bool = False) -> Array:
        return jnp.sum(x, axis=axis, keepdims=keepdims)

    def mean(self, x: Array, *, axis: int | None = None, keepdims: bool = False) -> Array:
        return jnp.mean(x, axis=axis, keepdims=keepdims)

    def max(self, x: Array, *, axis: int = -1, keepdims: bool = False) -> Array:
        return jnp.max(x, axis=axis, keepdims=keepdims)

    def argmax(self, x: Array) -> Array:
        return jnp.argmax(x, axis=-1)

    def cumsum(self, x: Array) -> Array:
        return jnp.cumsum(x, axis=-1)

    def pick(self, x: Array, index: Array) -> Array:
        return jnp.take_along_axis(x, index[..., None], axis=-1, mode="clip")[..., 0]

    def log_softmax(self, x: Array) -> Array:
        return jax.nn.log_softmax(x)

    def stop_gradient(self, x: Array) -> Array:
        return lax.stop_gradient(x)

    def scan(
        self, step: Callable[..., tuple[tuple[Any, ...], Any]], initial: tuple[Any, ...], arrays: Sequence[Array]
    ) -> tuple[tuple[Any, ...], Any]:
        return lax.scan(lambda carry, now: step(carry, *now), initial, tuple(arrays))

    def scan_reverse(self, step: Callable[..., Any], initial: Any, arrays: Sequence[Array]) -> Any:
        def both(carry: Any, now: tuple[Array, ...]) -> tuple[Any, Any]:
            found = step(carry, *now)
            return found, found

        _, carries = lax.scan(both, initial, tuple(arrays), reverse=True)
        return carries
