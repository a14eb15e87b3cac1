"""Leaves and inputs that many tests of the graph need."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from rollstream.spaces import Leaf


@pytest.fixture
def box() -> Callable[..., Leaf]:
    """Makes a bounded float32 Box."""

    def make(size: int = 4, *, name: str = "observation", dtype: str = "<f4") -> Leaf:
        return Leaf(name=name, kind="box", dtype=dtype, shape=(size,), low=(-1.0,) * size, high=(1.0,) * size)

    return make


@pytest.fixture
def discrete() -> Callable[..., Leaf]:
    """Makes a Discrete of any start."""

    def make(count: int = 2, *, start: int = 0, name: str = "action") -> Leaf:
        return Leaf(name=name, kind="discrete", dtype="<i8", shape=(), counts=(count,), starts=(start,))

    return make


@pytest.fixture
def generator() -> np.random.Generator:
    return np.random.default_rng(0)
