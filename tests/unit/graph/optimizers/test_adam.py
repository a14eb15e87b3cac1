"""Adam, worked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from rollstream.errors import ConfigError
from rollstream.graph import Adam
from rollstream.graph.backends.numpy_ops import NumpyOps
from rollstream.graph.optimizers import Moved


def _step(before: Moved, gradient: float, count: float) -> Moved:
    slope, number = np.array([gradient], np.float32), np.asarray(count, np.float32)
    settings = Adam(b1=0.9, b2=0.99, epsilon=1e-8)
    return settings.step(NumpyOps(), before.parameters, before.slots, slope, count=number, learning_rate=0.1)


def test_two_steps() -> None:
    start = Moved(parameters=np.ones(1, np.float32), slots=(np.zeros(1, np.float32), np.zeros(1, np.float32)))
    one = _step(start, 2.0, 1)
    # m = 0.2, v = 0.04; unbiased 2 and 4: the step is 0.1 * 2 / 2
    np.testing.assert_allclose([one.slots[0][0], one.slots[1][0], one.parameters[0]], [0.2, 0.04, 0.9], rtol=1e-5)
    two = _step(one, -1.0, 2)
    # m = 0.9*0.2 - 0.1 = 0.08, unbiased 0.08/0.19; v = 0.99*0.04 + 0.01 = 0.0496, unbiased 0.0496/0.0199
    step = 0.1 * (0.08 / 0.19) / np.sqrt(0.0496 / 0.0199)
    np.testing.assert_allclose([two.slots[0][0], two.slots[1][0], two.parameters[0]], [0.08, 0.0496, 0.9 - step], rtol=1e-5)


def test_settings_that_cannot_work_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"Adam's b2 must lie in \(0, 1\), got 1"):
        Adam(b2=1.0)
    with pytest.raises(ConfigError, match="Adam's epsilon must be > 0, got 0"):
        Adam(epsilon=0.0)
