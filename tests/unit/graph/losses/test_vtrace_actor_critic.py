"""The loss of IMPALA, worked by hand on a policy whose probabilities are 1/4 and 3/4 and whose value is twice the observation."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rollstream.errors import ConfigError
from rollstream.graph.losses import LossResult, VtraceLoss
from rollstream.graph.policies import ActorCriticPolicy
from rollstream.spaces import Leaf

ENTROPY = -(0.25 * math.log(0.25) + 0.75 * math.log(0.75))
NUMBERS = {"policy.bias": [0.0, math.log(3.0)], "value.weight": 2.0}


def _columns(**other: Any) -> dict[str, Any]:
    """Two steps of one row: values 1, 2, 4; ratios 1.5 (clipped to 1) and 0.5."""
    columns = {
        "observation": [[0.5], [1.0], [2.0]],
        "action": [1, 0, 0],
        "log_prob": [math.log(0.5), math.log(0.5), 0.0],
        "reward": [1.0, 2.0, 77.0],
        "discount": [0.5, 0.5, 77.0],
        "continues": [1.0, 1.0, 77.0],
        "weight": [1.0, 1.0, 77.0],
        **other,
    }
    batch = {name: np.asarray(column)[None] for name, column in columns.items()}
    return {**batch, "value_coefficient": 0.5, "entropy_coefficient": 0.01}


def test_it_is_the_papers(evaluated: Callable[..., LossResult], quarters: ActorCriticPolicy) -> None:
    result = evaluated(VtraceLoss(quarters, steps=2), NUMBERS, _columns())
    # deltas 1 + 0.5*2 - 1 = 1 and 0.5 * (2 + 0.5*4 - 2) = 1; errors 1 + 0.5*1*1 = 1.5 and 1; targets 2.5 and 3
    # advantages 1 + 0.5*3 - 1 = 1.5 and 0.5 * (2 + 2 - 2) = 1
    policy_loss = -(1.5 * math.log(0.75) + math.log(0.25)) / 2
    value_loss = (1.5**2 + 1.0) / 2
    np.testing.assert_allclose(result.metrics, [policy_loss, value_loss, ENTROPY, 1.0], rtol=1e-5)
    np.testing.assert_allclose(result.loss, policy_loss + 0.5 * value_loss - 0.01 * ENTROPY, rtol=1e-5)
    np.testing.assert_allclose(result.rows["td_error"], [1.25], rtol=1e-5)


def test_a_truncated_episode_bootstraps_from_its_final_observation_whose_row_does_not_count(
    evaluated: Callable[..., LossResult], quarters: ActorCriticPolicy
) -> None:
    # row 1 is the final observation of value 2; row 2 begins another episode
    result = evaluated(VtraceLoss(quarters, steps=2), NUMBERS, _columns(continues=[0.0, 0.0, 1.0], weight=[1.0, 0.0, 1.0]))
    np.testing.assert_allclose(result.metrics[:2], [-math.log(0.75), 1.0], rtol=1e-5)  # error and advantage 1 + 0.5*2 - 1
    np.testing.assert_allclose(result.rows["td_error"], [1.0], rtol=1e-5)


def test_a_row_without_any_weight_has_no_error(evaluated: Callable[..., LossResult], quarters: ActorCriticPolicy) -> None:
    one = _columns()
    both = {name: np.repeat(column, 2, axis=0) if np.ndim(column) else column for name, column in one.items()}
    both["weight"] = np.array([[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]])
    result = evaluated(VtraceLoss(quarters, steps=2), NUMBERS, both)
    np.testing.assert_allclose(result.loss, evaluated(VtraceLoss(quarters, steps=2), NUMBERS, one).loss, rtol=1e-6)
    np.testing.assert_allclose(result.rows["td_error"], [1.25, 0.0], rtol=1e-5)


def test_what_cannot_work_is_refused(
    box: Callable[..., Leaf], discrete: Callable[..., Leaf], quarters: ActorCriticPolicy
) -> None:
    with pytest.raises(ConfigError, match="VtraceLoss.loss needs the policy's value head; build it with value=True"):
        VtraceLoss(ActorCriticPolicy((box(1),), (discrete(2),), value=False), steps=2)
    with pytest.raises(ConfigError, match="VtraceLoss needs steps >= 1, got 0"):
        VtraceLoss(quarters, steps=0)
