"""One flat float32 vector holds all parameters; the layout says which part of it is which tensor.

So publishing weights is one copy, and clipping and Adam are a few operations on one array. A layout follows from a
component alone; two processes that build the same component have the same layout, and its hash tells when they did
not.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.errors import NonFiniteError, SchemaMismatch
from rollstream.graph.initializers import Initializer
from rollstream.seeding import child_generator

__all__ = ["FlatLayout", "Parameter"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One tensor: dotted name, shape, how it starts."""

    name: str
    shape: tuple[int, ...]
    init: Initializer

    @property
    def size(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True)
class FlatLayout:
    """Parameters in the order in which they lie in the flat vector."""

    parameters: tuple[Parameter, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(parameter.name for parameter in self.parameters)

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        return tuple(parameter.shape for parameter in self.parameters)

    @cached_property
    def offsets(self) -> tuple[int, ...]:
        """Where each parameter begins."""
        ends = np.cumsum([0, *(parameter.size for parameter in self.parameters)])
        return tuple(int(end) for end in ends[:-1])

    @cached_property
    def size(self) -> int:
        """Numbers in the flat vector."""
        return sum(parameter.size for parameter in self.parameters)

    @cached_property
    def hash(self) -> str:
        """16 hex digits; equal for equal names and shapes in equal order."""
        text = json.dumps([[parameter.name, list(parameter.shape)] for parameter in self.parameters])
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def init(self, seed: int) -> npt.NDArray[np.float32]:
        """First values, float32 [P]. Each parameter depends on the seed and its own name only."""
        flat = np.empty(self.size, np.float32)
        for parameter, view in zip(self.parameters, self.split(flat).values(), strict=True):
            view[...] = parameter.init.make(parameter.shape, child_generator(seed, "parameters", parameter.name))
        return flat

    def split(self, flat: npt.NDArray[Any]) -> dict[str, npt.NDArray[Any]]:
        """Views by name; no copies."""
        self._require_size(flat)
        return {
            parameter.name: flat[offset : offset + parameter.size].reshape(parameter.shape)
            for parameter, offset in zip(self.parameters, self.offsets, strict=True)
        }

    def join(self, tensors: Mapping[str, npt.NDArray[Any]]) -> npt.NDArray[np.float32]:
        """The flat vector of tensors by name: the inverse of `split`."""
        if set(tensors) != set(self.names):
            missing, extra = sorted(set(self.names) - set(tensors)), sorted(set(tensors) - set(self.names))
            raise SchemaMismatch(
                f"tensors do not fit the policy: missing {missing}, unknown {extra}; use the same settings on both sides"
            )
        flat = np.empty(self.size, np.float32)
        for name, view in self.split(flat).items():
            if tensors[name].shape != view.shape:
                raise SchemaMismatch(f"tensor {name} has shape {list(tensors[name].shape)}, the policy has {list(view.shape)}")
            view[...] = tensors[name]
        return flat

    def require_finite(self, flat: npt.NDArray[Any]) -> None:
        """Raise `NonFiniteError` that names the first tensor with a NaN or an infinity."""
        self._require_size(flat)
        if np.isfinite(flat).all():
            return
        for name, view in self.split(flat).items():
            bad = int(np.count_nonzero(~np.isfinite(view)))
            if bad:
                raise NonFiniteError(f"{bad} of {view.size} numbers of parameter {name} are not finite; weights refused")

    def _require_size(self, flat: npt.NDArray[Any]) -> None:
        if flat.shape != (self.size,):
            raise SchemaMismatch(
                f"weights have shape {list(flat.shape)}, the policy has {self.size} parameters; "
                "use the same policy settings on both sides"
            )
