"""Clipping each number of a gradient."""

from __future__ import annotations

import numpy as np
import pytest

from rollstream.errors import ConfigError
from rollstream.graph import Adam
from rollstream.graph.backends.numpy_ops import NumpyOps
from rollstream.graph.optimizers import Sgd, ValueClip


def test_the_optimizer_sees_each_number_clipped() -> None:
    gradient = np.array([0.25, -3.0, 0.5, 9.0], np.float32)
    clipped = ValueClip(Sgd(), limit=0.5)
    moved = clipped.step(NumpyOps(), np.zeros(4, np.float32), (), gradient, count=np.float32(1), learning_rate=1.0)
    assert moved.parameters.tolist() == [-0.25, 0.5, -0.5, -0.5]


def test_it_keeps_what_the_optimizer_keeps() -> None:
    assert ValueClip(Adam(), limit=1.0).slots == Adam.slots
    assert ValueClip(Sgd(), limit=1.0).slots == ()


def test_a_limit_that_lets_nothing_through_is_refused() -> None:
    with pytest.raises(ConfigError, match="ValueClip's limit must be > 0, got 0"):
        ValueClip(Sgd(), limit=0.0)
