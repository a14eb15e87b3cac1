"""Gradient descent, worked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from rollstream.errors import ConfigError
from rollstream.graph.backends.numpy_ops import NumpyOps
from rollstream.graph.optimizers import Moved, Sgd


def _steps(settings: Sgd, gradients: list[float]) -> tuple[list[float], Moved]:
    """Where a parameter that starts at 1 goes, with learning rate 0.1."""
    moved = Moved(parameters=np.ones(1, np.float32), slots=tuple(np.zeros(1, np.float32) for _ in settings.slots))
    path = []
    for number, gradient in enumerate(gradients, 1):
        moved = settings.step(
            NumpyOps(),
            moved.parameters,
            moved.slots,
            np.array([gradient], np.float32),
            count=np.float32(number),
            learning_rate=0.1,
        )
        path.append(float(moved.parameters[0]))
    return path, moved


def test_plain_steps_go_along_the_gradient_and_keep_nothing() -> None:
    path, moved = _steps(Sgd(), [2.0, -1.0])
    assert path == pytest.approx([0.8, 0.9])
    assert moved.slots == Sgd().slots == ()


def test_momentum_adds_what_went_before() -> None:
    path, moved = _steps(Sgd(momentum=0.5), [2.0, -1.0])
    assert path == pytest.approx([0.8, 0.8])  # v = 2, then 0.5 * 2 - 1 = 0
    assert Sgd(momentum=0.5).slots == ("momentum",)
    assert moved.slots[0] == pytest.approx([0.0])


def test_nesterov_looks_one_step_ahead() -> None:
    # v = 2: 2 + 0.5 * 2 = 3; v = 0: -1 + 0
    assert _steps(Sgd(momentum=0.5, nesterov=True), [2.0, -1.0])[0] == pytest.approx([0.7, 0.8])


def test_weight_decay_is_part_of_the_gradient() -> None:
    # 2 + 0.5 * 1 = 2.5, then -1 + 0.5 * 0.75 = -0.625
    assert _steps(Sgd(weight_decay=0.5), [2.0, -1.0])[0] == pytest.approx([0.75, 0.8125])


def test_settings_that_cannot_work_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"Sgd's momentum must lie in \[0, 1\), got 1"):
        Sgd(momentum=1.0)
    with pytest.raises(ConfigError, match="Sgd's nesterov needs momentum > 0, got 0"):
        Sgd(nesterov=True)
    with pytest.raises(ConfigError, match="Sgd's weight_decay must be >= 0, got -1"):
        Sgd(weight_decay=-1.0)
