"""How parameters start."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

__all__ = ["Blocks", "Constant", "Initializer", "Normal", "Orthogonal"]


class Initializer(Protocol):
    """Makes the first value of a parameter from its shape and a generator of its own."""

    def make(self, shape: tuple[int, ...], generator: np.random.Generator) -> npt.NDArray[np.float32]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """Every entry is `value`; 0 for biases."""

    value: float = 0.0

    def make(self, shape: tuple[int, ...], generator: np.random.Generator) -> npt.NDArray[np.float32]:
        return np.full(shape, self.value, np.float32)


@dataclass(frozen=True, slots=True, kw_only=True)
class Orthogonal:
    """Columns (or rows, whichever are fewer) orthogonal with norm `gain` (Saxe et al. 2014, arXiv 1312.6120, §3).

    Usual gains in PPO: sqrt(2) before tanh or relu, 0.01 for the policy head (so the first policy is nearly uniform), 1 for
    the value head (Huang et al. 2022, "The 37 implementation details of PPO", detail 2).
    """

    gain: float = math.sqrt(2.0)

    def make(self, shape: tuple[int, ...], generator: np.random.Generator) -> npt.NDArray[np.float32]:
        rows, columns = shape[0], math.prod(shape[1:])
        tall = generator.standard_normal((max(rows, columns), min(rows, columns)))
        q, r = np.linalg.qr(tall)
        q *= np.sign(np.diagonal(r))  # makes the distribution uniform over orthogonal matrices
        matrix = q if rows >= columns else q.T
        return np.ascontiguousarray(self.gain * matrix.reshape(shape), np.float32)


@dataclass(frozen=True, slots=True, kw_only=True)
class Normal:
    """Independent normal numbers of mean 0."""

    deviation: float = 1.0

    def make(self, shape: tuple[int, ...], generator: np.random.Generator) -> npt.NDArray[np.float32]:
        return (self.deviation * generator.standard_normal(shape)).astype(np.float32)


@dataclass(frozen=True, slots=True)
class Blocks:
    """Equal parts side by side along the last axis, each made on its own: the gates of a recurrent layer."""

    parts: tuple[Initializer, ...]

    def make(self, shape: tuple[int, ...], generator: np.random.Generator) -> npt.NDArray[np.float32]:
        part = (*shape[:-1], shape[-1] // len(self.parts))
        return np.concatenate([init.make(part, generator) for init in self.parts], axis=-1)
