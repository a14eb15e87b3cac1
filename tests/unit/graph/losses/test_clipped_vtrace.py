"""The loss of APPO, worked by hand on a policy whose probabilities are 1/4 and 3/4 and whose value is twice the observation."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rollstream.errors import ConfigError
from rollstream.graph.losses import ClippedVtraceLoss, LossResult
from rollstream.graph.policies import ActorCriticPolicy
from rollstream.spaces import Leaf

ENTROPY = -(0.25 * math.log(0.25) + 0.75 * math.log(0.75))
NUMBERS = {"policy.bias": [0.0, math.log(3.0)], "value.weight": 2.0}
EVEN = {"policy.bias": [0.0, 0.0], "value.weight": 77.0}
"""The target network: both actions with probability 1/2. Its values do not count."""


def _columns(**other: Any) -> dict[str, Any]:
    """Two steps of one row by a policy that took action 1 with probability 1/2, then action 0 with 1; values 1, 2, 4."""
    columns = {
        "observation": [[0.5], [1.0], [2.0]],
        "action": [1, 0, 0],
        "log_prob": [math.log(0.5), 0.0, 0.0],
        "reward": [1.0, 2.0, 77.0],
        "discount": [0.5, 0.5, 77.0],
        "continues": [1.0, 1.0, 77.0],
        "weight": [1.0, 1.0, 77.0],
    }
    batch = {name: np.asarray(column)[None] for name, column in columns.items()}
    return {**batch, "value_coefficient": 0.5, "entropy_coefficient": 0.01, "clip_ratio": 0.2, "kl_coefficient": 0.0, **other}


def test_it_is_the_papers(evaluated: Callable[..., LossResult], quarters: ActorCriticPolicy) -> None:
    result = evaluated(ClippedVtraceLoss(quarters, steps=2), NUMBERS, _columns(kl_coefficient=0.1), EVEN)
    # target / acted: 1 and 0.5. deltas 1 + 0.5*2 - 1 = 1 and 0.5 * (2 + 0.5*4 - 2) = 1; errors 1 + 0.5*1*1 = 1.5 and 1; targets 2.5 and 3
    # advantages 1 + 0.5*3 - 1 = 1.5 and 0.5 * (2 + 2 - 2) = 1
    # acted / target: 1 and 2, learns / acted 1.5 and 0.25; ratios 1.5 (cut to 1.2) and 0.5 (which is the smaller)
    policy_loss = -(1.2 * 1.5 + 0.5 * 1.0) / 2
    value_loss = (1.5**2 + 1.0) / 2
    divergence = (1.5 - 1 - math.log(1.5) + 0.5 - 1 - math.log(0.5)) / 2
    np.testing.assert_allclose(result.metrics, [policy_loss, value_loss, ENTROPY, 1.0, divergence, 1.0], rtol=1e-5)
    total = policy_loss + 0.5 * value_loss - 0.01 * ENTROPY + 0.1 * divergence
    np.testing.assert_allclose(result.loss, total, rtol=1e-5)


def test_what_acted_counts_up_to_a_bound(evaluated: Callable[..., LossResult], quarters: ActorCriticPolicy) -> None:
    result = evaluated(ClippedVtraceLoss(quarters, steps=2, worker_clip=1.2), NUMBERS, _columns(), EVEN)
    # the second ratio is 1.2 * 0.25 = 0.3
    np.testing.assert_allclose(result.metrics[0], -(1.2 * 1.5 + 0.3 * 1.0) / 2, rtol=1e-5)
    np.testing.assert_allclose(result.metrics[3], (1.5 + 0.3) / 2, rtol=1e-5)


def test_steps_of_weight_0_do_not_count(evaluated: Callable[..., LossResult], quarters: ActorCriticPolicy) -> None:
    weight = np.array([[1.0, 0.0, 0.0]])
    continues = np.array([[0.0, 0.0, 0.0]])
    result = evaluated(ClippedVtraceLoss(quarters, steps=2), NUMBERS, _columns(weight=weight, continues=continues), EVEN)
    np.testing.assert_allclose(result.metrics[:2], [-1.2 * 1.0, 1.0], rtol=1e-5)  # error and advantage 1 + 0.5*2 - 1


def test_what_cannot_work_is_refused(
    box: Callable[..., Leaf], discrete: Callable[..., Leaf], quarters: ActorCriticPolicy
) -> None:
    with pytest.raises(ConfigError, match="ClippedVtraceLoss.loss needs the policy's value head; build it with value=True"):
        ClippedVtraceLoss(ActorCriticPolicy((box(1),), (discrete(2),), value=False), steps=2)
    with pytest.raises(ConfigError, match="ClippedVtraceLoss needs steps >= 1, got 0"):
        ClippedVtraceLoss(quarters, steps=0)
