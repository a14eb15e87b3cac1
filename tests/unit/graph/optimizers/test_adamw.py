"""Adam with decoupled weight decay."""

from __future__ import annotations

import numpy as np
import pytest

from rollstream.errors import ConfigError
from rollstream.graph import Adam
from rollstream.graph.backends.numpy_ops import NumpyOps
from rollstream.graph.optimizers import AdamW

START, SLOTS = np.full(1, 2.0, np.float32), (np.zeros(1, np.float32), np.zeros(1, np.float32))


def _step(settings: Adam | AdamW, gradient: float) -> float:
    slope = np.array([gradient], np.float32)
    moved = settings.step(NumpyOps(), START, SLOTS, slope, count=np.float32(1), learning_rate=0.1)
    return float(moved.parameters[0])


def test_parameters_shrink_by_the_rate_times_the_decay_whatever_the_gradient() -> None:
    assert _step(AdamW(weight_decay=0.5), 0.0) == pytest.approx(2.0 - 0.1 * 0.5 * 2.0)


def test_beside_that_it_is_adam() -> None:
    settings = {"b1": 0.8, "b2": 0.9, "epsilon": 1e-3}
    assert _step(AdamW(weight_decay=0.5, **settings), 3.0) == pytest.approx(_step(Adam(**settings), 3.0) - 0.1)
    assert AdamW.slots == Adam.slots


def test_settings_that_cannot_work_are_refused() -> None:
    with pytest.raises(ConfigError, match="AdamW's weight_decay must be >= 0, got -1"):
        AdamW(weight_decay=-1.0)
    with pytest.raises(ConfigError, match=r"Adam's b1 must lie in \(0, 1\), got 0"):
        AdamW(b1=0.0)
