"""The loss of SAC, worked by hand on networks without hidden layers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from rollstream.graph.losses import LossResult, SoftActorCriticLoss
from rollstream.graph.policies import SoftActorCritic
from rollstream.spaces import Leaf


def _numbers(q1: float, q2: float) -> Mapping[str, Any]:
    """The actor's sample before tanh is the noise; critics are multiples of the action; alpha is 1/2."""
    return {"critics.q1.value.weight": [0.0, q1], "critics.q2.value.weight": [0.0, q2], "log_alpha": math.log(0.5)}


def test_critics_actor_and_temperature(evaluated: Callable[..., LossResult], box: Callable[..., Leaf]) -> None:
    policy = SoftActorCritic((box(1),), (box(1, name="action"),), hidden=())
    columns = {
        "observation": [[1.0]],
        "next_observation": [[1.0]],
        "action": [[0.5]],
        "reward": [1.0],
        "discount": [0.5],
        "noise.action": [[0.5]],
        "next_noise.action": [[-0.25]],
        "weight": [1.0],
    }
    result = evaluated(SoftActorCriticLoss(policy, target_entropy=-1.0), _numbers(2.0, 4.0), columns, _numbers(3.0, 6.0))

    def log_prob(u: float) -> float:  # a standard normal through tanh
        return -0.5 * u * u - 0.5 * math.log(2.0 * math.pi) - math.log(1.0 - math.tanh(u) ** 2)

    # a' = tanh(-1/4) < 0: the lower target value is 6 a'
    target = 1.0 + 0.5 * (6.0 * math.tanh(-0.25) - 0.5 * log_prob(-0.25))
    critics = 0.5 * (target - 1.0) ** 2 + 0.5 * (target - 2.0) ** 2
    actor = 0.5 * log_prob(0.5) - 2.0 * math.tanh(0.5)
    temperature = -math.log(0.5) * (log_prob(0.5) - 1.0)
    np.testing.assert_allclose(result.loss, critics + actor + temperature, rtol=1e-5)
    np.testing.assert_allclose(result.metrics, [critics, actor, -log_prob(0.5), 0.5, 1.5], rtol=1e-5)
    np.testing.assert_allclose(result.rows["td_error"], [target - 1.5], rtol=1e-5)
    fixed = SoftActorCriticLoss(policy, target_entropy=-1.0, learn_temperature=False)
    result = evaluated(fixed, _numbers(2.0, 4.0), columns, _numbers(3.0, 6.0))
    np.testing.assert_allclose(result.loss, critics + actor, rtol=1e-5)
