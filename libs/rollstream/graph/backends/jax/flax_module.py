"""A user's own Flax network as a component: its parameters lie in the flat vector, under its own paths.

    FlaxModule(MyNetwork(features=64))                   # flax.linen
    FlaxModule(MyNetwork(features=64, rngs=nnx.Rngs(0)))  # flax.nnx; starts from the values that it has

It runs in mode `jax` alone. Inside, JAX is as users know it: without 64-bit types.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import numpy as np
import numpy.typing as npt
from flax import linen, nnx

from rollstream.errors import ConfigError
from rollstream.graph.backends.jax.ops import JaxOps
from rollstream.graph.ops import Array
from rollstream.graph.scope import Scope, api
from rollstream.graph.unsupported import UnsupportedOp

__all__ = ["FlaxModule"]


@dataclass(frozen=True)
class FlaxModule:
    """`module(x)`, a deterministic function of its parameters: no dropout, no statistics of batches.

    Attributes:
        module: of `flax.linen` or `flax.nnx`.
    """

    module: Any

    @api
    def output(self, scope: Scope, x: Array) -> Array:
        """[B, ...] -> whatever the module makes of it."""
        if scope.declaration is None and not isinstance(scope.ops, JaxOps):
            raise UnsupportedOp(
                f"the Flax module {self._name} runs in mode 'jax' only; use mode 'jax', or the components Mlp and Cnn in its place"
            )
        struct: Any = jax.ShapeDtypeStruct
        narrow = struct(x.shape, _NARROW.get(np.dtype(x.dtype), x.dtype))
        with jax.enable_x64(False):
            try:
                network = self._network
                shapes = network.shapes(narrow)
                made = jax.eval_shape(network.apply, shapes, narrow)
            except Exception as error:
                reason = (str(error).strip() or repr(error)).splitlines()[0]
                given = f"{np.dtype(narrow.dtype)} {list(x.shape)}"
                raise ConfigError(
                    f"{scope.path or '(root)'}: the Flax module {self._name} does not run on {given}: {reason}"
                ) from error
        places, structure = jax.tree_util.tree_flatten_with_path(shapes)
        leaves = []
        for path, leaf in places:
            initial = _Initial(network=network, x=narrow, path=path)
            leaves.append(scope.parameter(_dotted(path), tuple(leaf.shape), initial))
        if scope.declaration is not None:
            return np.zeros(made.shape, _WIDE.get(np.dtype(made.dtype), made.dtype))
        given = x.astype(narrow.dtype)
        with jax.enable_x64(False):
            found = network.apply(jax.tree_util.tree_unflatten(structure, leaves), given)
        return found.astype(_WIDE.get(np.dtype(found.dtype), found.dtype))

    @property
    def _name(self) -> str:
        return type(self.module).__name__

    @cached_property
    def _network(self) -> _Linen | _Nnx:
        return _Nnx(self.module) if isinstance(self.module, nnx.Module) else _Linen(self.module)


_NARROW = {np.dtype(wide): np.dtype(narrow) for wide, narrow in (("i8", "i4"), ("u8", "u4"), ("f8", "f4"))}
_WIDE = {np.dtype("i4"): np.dtype("i8")}
"""Integers of 32 bits are the only ones that the module could make; those of other components have 64."""


class _Linen:
    """A module without parameters of its own: they go in at each call."""

    def __init__(self, module: linen.Module) -> None:
        self._module = module

    def shapes(self, x: Any) -> Any:
        """Of the parameters, as a tree."""
        variables = jax.eval_shape(self._module.init, jax.random.key(0), x)
        _require_parameters_only(set(variables) - {"params"})
        return variables.get("params", {})

    @cached_property
    def initial(self) -> Callable[..., Any]:
        """First parameters from a key and an example of x."""
        return jax.jit(lambda key, x: self._module.init(key, x)["params"])

    def apply(self, parameters: Any, x: Any) -> Any:
        return self._module.apply({"params": parameters}, x)


class _Nnx:
    """A module that holds its parameters, taken out of it."""

    def __init__(self, module: nnx.Module) -> None:
        self._definition, *states = nnx.split(module, nnx.Param, ...)
        self._parameters: Any = states[0]
        others: Any = states[1]
        _require_parameters_only({".".join(map(str, path)) for path in nnx.to_flat_state(others).paths})

    def shapes(self, x: Any) -> Any:
        """Of the parameters, as a tree."""
        return jax.eval_shape(lambda: nnx.to_pure_dict(self._parameters))

    def initial(self, key: Any, x: Any) -> Any:
        """The values that the module has."""
        return nnx.to_pure_dict(self._parameters)

    def apply(self, parameters: Any, x: Any) -> Any:
        state = jax.tree_util.tree_map(lambda leaf: leaf, self._parameters)
        nnx.replace_by_pure_dict(state, parameters)
        return nnx.merge(self._definition, state)(x)


def _require_parameters_only(others: set[str]) -> None:
    if others:
        raise ConfigError(
            f"it keeps {', '.join(sorted(others))} besides parameters; use layers without state (LayerNorm, no Dropout)"
        )


@dataclass(frozen=True, kw_only=True)
class _Initial:
    """The module's own initializer of one parameter; see `initializers.Initializer`."""

    network: _Linen | _Nnx
    x: Any
    path: Any

    def make(self, shape: tuple[int, ...], generator: np.random.Generator) -> npt.NDArray[np.float32]:
        key = jax.random.key(int(generator.integers(2**31)))
        found = self.network.initial(key, np.zeros(self.x.shape, self.x.dtype))
        for step in self.path:
            found = found[step.key]
        assert math.prod(shape) == np.size(found), "shapes follow from the same module and input"
        return np.asarray(found, np.float32)


def _dotted(path: Any) -> str:
    return ".".join(str(step.key) for step in path)
