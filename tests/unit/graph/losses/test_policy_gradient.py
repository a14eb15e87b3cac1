"""The policy gradient, worked by hand on a policy whose probabilities are 1/4 and 3/4 and whose value is 2."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from rollstream.errors import ConfigError
from rollstream.graph.losses import LossResult, PolicyGradientLoss
from rollstream.graph.policies import ActorCriticPolicy
from rollstream.spaces import Leaf

ENTROPY = -(0.25 * math.log(0.25) + 0.75 * math.log(0.75))


def _columns(weight: list[float]) -> dict[str, Any]:
    rows = len(weight)
    return {
        "observation": np.ones((rows, 1)),
        "action": [1, 0, 0][:rows],
        "advantage": [1.0, -2.0, 77.0][:rows],
        "return": [1.0, 4.0, 77.0][:rows],
        "weight": weight,
        "value_coefficient": 0.5,
        "entropy_coefficient": 0.01,
    }


def test_it_weighs_log_probabilities_by_advantages(
    evaluated: Callable[..., LossResult], quarters: ActorCriticPolicy, quarters_numbers: Mapping[str, Any]
) -> None:
    result = evaluated(PolicyGradientLoss(quarters), quarters_numbers, _columns([1.0, 1.0]))
    policy_loss = -(math.log(0.75) * 1.0 - math.log(0.25) * 2.0) / 2
    value_loss = (1.0 + 4.0) / 2
    np.testing.assert_allclose(result.metrics, [policy_loss, value_loss, ENTROPY], rtol=1e-5)
    np.testing.assert_allclose(result.loss, policy_loss + 0.5 * value_loss - 0.01 * ENTROPY, rtol=1e-4)


def test_means_are_weighted_and_rows_of_weight_zero_do_not_count(
    evaluated: Callable[..., LossResult], quarters: ActorCriticPolicy, quarters_numbers: Mapping[str, Any]
) -> None:
    result = evaluated(PolicyGradientLoss(quarters), quarters_numbers, _columns([3.0, 1.0, 0.0]))
    policy_loss = -(3.0 * math.log(0.75) - 2.0 * math.log(0.25)) / 4
    np.testing.assert_allclose(result.metrics, [policy_loss, (3.0 + 4.0) / 4, ENTROPY], rtol=1e-5)


def test_a_policy_without_value_head_is_refused(box: Callable[..., Leaf], discrete: Callable[..., Leaf]) -> None:
    with pytest.raises(ConfigError, match="PolicyGradientLoss.loss needs the policy's value head; build it with value=True"):
        PolicyGradientLoss(ActorCriticPolicy((box(1),), (discrete(2),), value=False))
