"""The losses of TD3 and DDPG, worked by hand on networks without hidden layers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from rollstream.errors import ConfigError
from rollstream.graph.losses import LossResult, TwinDelayedLoss
from rollstream.graph.policies import DeterministicActorCritic
from rollstream.spaces import Leaf

COLUMNS = {
    "observation": [[1.0]],
    "next_observation": [[1.0]],
    "action": [[0.5]],
    "reward": [1.0],
    "discount": [0.5],
    "next_noise.action": [[10.0]],
    "weight": [1.0],
}


def _numbers(actor: float, q1: float, q2: float) -> Mapping[str, Any]:
    """The action is tanh(actor); critics are multiples of the action."""
    return {
        "policy.action.bias": actor,
        "critics.q1.value.weight": [0.0, q1],
        "critics.q2.value.weight": [0.0, q2],
    }


@pytest.fixture
def policy(box: Callable[..., Leaf]) -> DeterministicActorCritic:
    return DeterministicActorCritic((box(1),), (box(1, name="action"),), hidden=())


def test_td3(evaluated: Callable[..., LossResult], policy: DeterministicActorCritic) -> None:
    columns = {**COLUMNS, "actor_weight": 1.0}
    result = evaluated(TwinDelayedLoss(policy), _numbers(0.25, 2.0, 4.0), columns, _numbers(-0.25, 6.0, 3.0))
    # noise 0.2 * 10 is cut at 0.5; the action is positive then, so the lower value is 3 a'
    target = 1.0 + 0.5 * 3.0 * (math.tanh(-0.25) + 0.5)
    critics = 0.5 * (target - 1.0) ** 2 + 0.5 * (target - 2.0) ** 2
    actor = -2.0 * math.tanh(0.25)
    np.testing.assert_allclose(result.loss, critics + actor, rtol=1e-5)
    np.testing.assert_allclose(result.metrics, [critics, actor, 1.0], rtol=1e-5)
    np.testing.assert_allclose(result.rows["td_error"], [target - 1.5], rtol=1e-5)


def test_between_its_turns_the_actor_does_not_count(
    evaluated: Callable[..., LossResult], policy: DeterministicActorCritic
) -> None:
    columns = {**COLUMNS, "actor_weight": 0.0}
    result = evaluated(TwinDelayedLoss(policy), _numbers(0.25, 2.0, 4.0), columns, _numbers(-0.25, 6.0, 3.0))
    np.testing.assert_allclose(result.loss, result.metrics[0], rtol=1e-6)


def test_ddpg_has_one_critic_and_no_noise(evaluated: Callable[..., LossResult], policy: DeterministicActorCritic) -> None:
    columns = {**COLUMNS, "actor_weight": 1.0}
    loss = TwinDelayedLoss(policy, twin=False, target_noise=0.0)
    result = evaluated(loss, _numbers(0.25, 2.0, 4.0), columns, _numbers(-0.25, 6.0, 3.0))
    target = 1.0 + 0.5 * 6.0 * math.tanh(-0.25)
    np.testing.assert_allclose(result.loss, 0.5 * (target - 1.0) ** 2 - 2.0 * math.tanh(0.25), rtol=1e-5)
    np.testing.assert_allclose(result.rows["td_error"], [target - 1.0], rtol=1e-5)


def test_noise_below_zero_is_refused(policy: DeterministicActorCritic) -> None:
    with pytest.raises(ConfigError, match="target_noise and target_noise_limit must be >= 0, got -1.0 and 0.5"):
        TwinDelayedLoss(policy, target_noise=-1.0)
