"""Behavior cloning, worked by hand on a policy whose probabilities are 1/4 and 3/4 and whose value is 2."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from rollstream.errors import ConfigError
from rollstream.graph.losses import BehaviorCloningLoss, LossResult
from rollstream.graph.policies import ActorCriticPolicy
from rollstream.spaces import Leaf

COLUMNS = {"observation": np.ones((3, 1)), "action": [1, 0, 0], "weight": [3.0, 1.0, 0.0]}
LIKELIHOOD = -(3.0 * math.log(0.75) + math.log(0.25)) / 4
ENTROPY = -(0.25 * math.log(0.25) + 0.75 * math.log(0.75))


def test_it_is_the_negative_log_likelihood_of_the_actions(
    evaluated: Callable[..., LossResult], quarters: ActorCriticPolicy, quarters_numbers: Mapping[str, Any]
) -> None:
    result = evaluated(BehaviorCloningLoss(quarters), quarters_numbers, COLUMNS)
    np.testing.assert_allclose(result.loss, LIKELIHOOD, rtol=1e-5)
    np.testing.assert_allclose(result.metrics, [LIKELIHOOD, ENTROPY], rtol=1e-5)


def test_the_value_of_whoever_acted_may_be_learned_too(
    evaluated: Callable[..., LossResult], quarters: ActorCriticPolicy, quarters_numbers: Mapping[str, Any]
) -> None:
    columns = {**COLUMNS, "return": [1.0, 4.0, 77.0], "value_coefficient": 0.5}
    result = evaluated(BehaviorCloningLoss(quarters, value=True), quarters_numbers, columns)
    value_loss = (3.0 * 1.0 + 4.0) / 4
    np.testing.assert_allclose(result.loss, LIKELIHOOD + 0.5 * value_loss, rtol=1e-5)
    np.testing.assert_allclose(result.metrics, [LIKELIHOOD, ENTROPY, value_loss], rtol=1e-5)


def test_a_value_needs_a_value_head(box: Callable[..., Leaf], discrete: Callable[..., Leaf]) -> None:
    policy = ActorCriticPolicy((box(1),), (discrete(2),), value=False)
    assert BehaviorCloningLoss(policy).metric_names == ("negative_log_likelihood", "entropy")
    with pytest.raises(ConfigError, match="BehaviorCloningLoss.loss with value=True needs the policy's value head"):
        BehaviorCloningLoss(policy, value=True)
