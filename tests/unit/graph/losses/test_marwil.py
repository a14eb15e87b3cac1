"""MARWIL, worked by hand on a policy whose probabilities are 1/4 and 3/4 and whose value is 2."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from rollstream.errors import ConfigError
from rollstream.graph.losses import BehaviorCloningLoss, LossResult, MarwilLoss
from rollstream.graph.policies import ActorCriticPolicy
from rollstream.spaces import Leaf

ROWS = {"observation": np.ones((2, 1)), "action": [1, 0], "return": [4.0, 1.0], "weight": [1.0, 1.0]}
"""Advantages 2 and -1."""


def _columns(beta: float) -> dict[str, Any]:
    return {**ROWS, "beta": beta, "advantage_scale": 2.0, "value_coefficient": 0.5}


def test_actions_count_as_much_as_they_went_better_than_expected(
    evaluated: Callable[..., LossResult], quarters: ActorCriticPolicy, quarters_numbers: Mapping[str, Any]
) -> None:
    result = evaluated(MarwilLoss(quarters), quarters_numbers, _columns(1.0))
    weights = [math.exp(1.0), math.exp(-0.5)]
    policy_loss = -(weights[0] * math.log(0.75) + weights[1] * math.log(0.25)) / 2
    entropy = -(0.25 * math.log(0.25) + 0.75 * math.log(0.75))
    np.testing.assert_allclose(result.metrics, [policy_loss, 2.5, entropy, sum(weights) / 2], rtol=1e-5)
    np.testing.assert_allclose(result.loss, policy_loss + 0.5 * 2.5, rtol=1e-5)
    np.testing.assert_allclose(result.rows["advantage"], [2.0, -1.0])


def test_no_action_counts_more_than_the_limit(
    evaluated: Callable[..., LossResult], quarters: ActorCriticPolicy, quarters_numbers: Mapping[str, Any]
) -> None:
    result = evaluated(MarwilLoss(quarters, max_weight=1.5), quarters_numbers, _columns(1.0))
    assert result.metrics[3] == pytest.approx((1.5 + math.exp(-0.5)) / 2, rel=1e-5)
    result = evaluated(MarwilLoss(quarters), quarters_numbers, _columns(1e6))  # no overflow on the way
    assert result.metrics[3] == pytest.approx(10.0, rel=1e-5)


def test_without_beta_it_is_behavior_cloning(
    evaluated: Callable[..., LossResult], quarters: ActorCriticPolicy, quarters_numbers: Mapping[str, Any]
) -> None:
    found = evaluated(MarwilLoss(quarters), quarters_numbers, _columns(0.0))
    cloning = {name: column for name, column in ROWS.items() if name != "return"}
    assert found.metrics[0] == pytest.approx(float(evaluated(BehaviorCloningLoss(quarters), quarters_numbers, cloning).loss))


def test_what_cannot_work_is_refused(
    box: Callable[..., Leaf], discrete: Callable[..., Leaf], quarters: ActorCriticPolicy
) -> None:
    with pytest.raises(ConfigError, match="MarwilLoss.loss needs the policy's value head; build it with value=True"):
        MarwilLoss(ActorCriticPolicy((box(1),), (discrete(2),), value=False))
    with pytest.raises(ConfigError, match="max_weight must be > 0, got 0"):
        MarwilLoss(quarters, max_weight=0.0)
