"""RMSProp, worked by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rollstream.errors import ConfigError
from rollstream.graph.backends.numpy_ops import NumpyOps
from rollstream.graph.optimizers import Moved, RmsProp


def _steps(settings: RmsProp, gradients: list[float]) -> tuple[list[float], Moved]:
    """How far a parameter goes with each step at learning rate 1."""
    moved = Moved(parameters=np.zeros(1), slots=tuple(np.zeros(1) for _ in settings.slots))
    lengths = []
    for number, gradient in enumerate(gradients, 1):
        before = moved.parameters
        moved = settings.step(
            NumpyOps(dtype=np.float64),
            before,
            moved.slots,
            np.array([gradient]),
            count=np.float64(number),
            learning_rate=1.0,
        )
        lengths.append(float(moved.parameters[0] - before[0]))
    return lengths, moved


def test_gradients_are_divided_by_the_root_of_their_mean_square() -> None:
    # mean square 0.5 * 4 = 2, then 0.5 * 2 + 0.5 * 1 = 1.5
    lengths, moved = _steps(RmsProp(decay=0.5, epsilon=0.1), [2.0, -1.0])
    assert lengths == pytest.approx([-2.0 / (math.sqrt(2.0) + 0.1), 1.0 / (math.sqrt(1.5) + 0.1)])
    assert moved.slots[0] == pytest.approx([1.5])


def test_tensorflows_adds_epsilon_inside_the_root_and_starts_at_one() -> None:
    # mean square 0.5 * 1 + 0.5 * 4 = 2.5, then 0.5 * 2.5 + 0.5 * 1 = 1.75
    settings = RmsProp(decay=0.5, epsilon=0.1, epsilon_in_root=True, initial_square=1.0)
    lengths, _ = _steps(settings, [2.0, -1.0])
    assert lengths == pytest.approx([-2.0 / math.sqrt(2.6), 1.0 / math.sqrt(1.85)])


def test_centered_divides_by_the_standard_deviation() -> None:
    # mean square 2, mean 1: variance 1; then 1.5 and 0: variance 1.5
    lengths, moved = _steps(RmsProp(decay=0.5, epsilon=0.1, centered=True), [2.0, -1.0])
    assert lengths == pytest.approx([-2.0 / 1.1, 1.0 / (math.sqrt(1.5) + 0.1)])
    assert [float(slot[0]) for slot in moved.slots] == pytest.approx([1.5, 0.0])


def test_a_variance_that_rounds_below_zero_counts_as_zero() -> None:
    settings = RmsProp(decay=0.5, epsilon=0.1, centered=True)
    slots = (np.zeros(1, np.float32), np.full(1, 3.0, np.float32))  # as if rounding had gone astray
    moved = settings.step(
        NumpyOps(), np.zeros(1, np.float32), slots, np.zeros(1, np.float32), count=np.float32(1), learning_rate=1.0
    )
    assert moved.parameters.tolist() == [0.0]


def test_momentum_keeps_a_share_of_past_steps() -> None:
    plain, _ = _steps(RmsProp(decay=0.5, epsilon=0.1), [2.0, -1.0])
    lengths, moved = _steps(RmsProp(decay=0.5, epsilon=0.1, momentum=0.5), [2.0, -1.0])
    assert lengths == pytest.approx([plain[0], 0.5 * plain[0] + plain[1]])
    assert len(moved.slots) == 2


def test_slots_are_named_for_what_they_hold() -> None:
    assert RmsProp().slots == ("mean_square",)
    assert RmsProp(centered=True, momentum=0.9).slots == ("mean_square", "mean_gradient", "momentum")


def test_settings_that_cannot_work_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"RmsProp's decay must lie in \(0, 1\), got 1"):
        RmsProp(decay=1.0)
    with pytest.raises(ConfigError, match="RmsProp's epsilon must be > 0, got 0"):
        RmsProp(epsilon=0.0)
    with pytest.raises(ConfigError, match="RmsProp's initial_square must be >= 0, got -1"):
        RmsProp(initial_square=-1.0)
    with pytest.raises(ConfigError, match=r"RmsProp's momentum must lie in \[0, 1\), got 1"):
        RmsProp(momentum=1.0)
