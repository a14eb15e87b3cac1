"""The double-Q loss, worked by hand on linear action values."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rollstream.errors import ConfigError
from rollstream.graph import DoubleQLoss, QPolicy, declare
from rollstream.graph.losses import LossResult
from rollstream.graph.memory import Memory
from rollstream.graph.reference import reference
from rollstream.spaces import Leaf


def _evaluate(policy: QPolicy, *, discount: list[float], weight: list[float], **settings: Any) -> LossResult:
    """Online Q(s) = (s, 2s); target Q(s) = (5s, 3s). Two rows with s = 1 and s' = 2."""
    layout = declare(policy).layout

    def linear(first: float, second: float) -> np.ndarray:
        return layout.join({"head.weight": np.array([[first, second]], np.float32), "head.bias": np.zeros(2, np.float32)})

    inputs = {
        "observation": np.ones((2, 1), np.float32),
        "next_observation": np.full((2, 1), 2.0, np.float32),
        "action": np.array([0, 1]),
        "reward": np.array([0.5, 0.5], np.float32),
        "discount": np.array(discount, np.float32),
        "weight": np.array(weight, np.float32),
    }
    loss = DoubleQLoss(policy, **settings)
    memory = Memory(layout=layout, flat=linear(1.0, 2.0), target=linear(5.0, 3.0))
    result = reference(loss, api="loss", memory=memory, inputs=inputs)
    assert isinstance(result, LossResult)
    return result


@pytest.fixture
def policy(box: Callable[..., Leaf], discrete: Callable[..., Leaf]) -> QPolicy:
    return QPolicy((box(1),), (discrete(2),), hidden=())


def test_the_online_network_chooses_and_the_target_network_values(policy: QPolicy) -> None:
    # online prefers action 1 at s' = 2, which the target values at 6 (its own best would be 10)
    # errors 0.5 + 0.5*6 - 1 = 2.5 and 0.5 + 0 - 2 = -1.5; Huber 2.0 and 1.0
    result = _evaluate(policy, discount=[0.5, 0.0], weight=[1.0, 1.0])
    np.testing.assert_allclose(result.rows["td_error"], [2.5, -1.5])
    np.testing.assert_allclose(result.loss, 1.5)
    np.testing.assert_allclose(result.metrics, [2.0, 1.5])


def test_importance_weights_scale_rows_and_are_not_normalized_away(policy: QPolicy) -> None:
    result = _evaluate(policy, discount=[0.5, 0.0], weight=[0.5, 0.25])
    np.testing.assert_allclose(result.loss, (0.5 * 2.0 + 0.25 * 1.0) / 2)


def test_a_delta_that_cannot_work_is_refused(policy: QPolicy) -> None:
    with pytest.raises(ConfigError, match="huber_delta must be > 0, got 0"):
        DoubleQLoss(policy, huber_delta=0.0)
    with pytest.raises(ConfigError, match="conservative must be >= 0, got -1"):
        DoubleQLoss(policy, conservative=-1.0)


def test_on_a_compressed_scale_values_are_expanded_before_they_are_discounted(policy: QPolicy) -> None:
    found = _evaluate(policy, discount=[0.5, 0.0], weight=[1.0, 1.0], rescale=True).rows["td_error"]
    size = ((math.sqrt(1.0 + 0.004 * 7.001) - 1.0) / 0.002) ** 2 - 1.0  # h^-1 of 6
    target = math.sqrt(0.5 + 0.5 * size + 1.0) - 1.0 + 0.001 * (0.5 + 0.5 * size)
    np.testing.assert_allclose(found, [target - 1.0, math.sqrt(1.5) - 1.0 + 0.0005 - 2.0], rtol=1e-5)


def test_actions_that_nobody_took_may_be_kept_from_looking_better(policy: QPolicy) -> None:
    # values 1 and 2: taken are 0 and 1
    penalty = [math.log(math.exp(1.0) + math.exp(2.0)) - taken for taken in (1.0, 2.0)]
    result = _evaluate(policy, discount=[0.5, 0.0], weight=[1.0, 0.5], conservative=0.1)
    np.testing.assert_allclose(result.loss, (2.0 + 0.1 * penalty[0] + 0.5 * (1.0 + 0.1 * penalty[1])) / 2, rtol=1e-6)
