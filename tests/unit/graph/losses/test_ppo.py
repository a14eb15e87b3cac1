"""The loss of PPO, worked by hand on a policy whose probabilities are 1/4 and 3/4 and whose value is 2."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rollstream.errors import ConfigError
from rollstream.graph import ActorCriticPolicy, PpoLoss, declare
from rollstream.graph.losses import LossResult
from rollstream.graph.memory import Memory
from rollstream.graph.reference import reference
from rollstream.spaces import Leaf


@pytest.fixture
def loss(box: Callable[..., Leaf], discrete: Callable[..., Leaf]) -> PpoLoss:
    return PpoLoss(ActorCriticPolicy((box(1),), (discrete(2),), hidden=()))


def _evaluate(loss: PpoLoss, *, weight: Any, **other: Any) -> LossResult:
    layout = declare(loss.policy).layout
    flat = layout.join(
        {
            "policy.weight": np.array([[0.0, math.log(3.0)]], np.float32),
            "policy.bias": np.zeros(2, np.float32),
            "value.weight": np.array([[2.0]], np.float32),
            "value.bias": np.zeros(1, np.float32),
        }
    )
    rows = len(weight)
    inputs = {
        "observation": np.ones((rows, 1), np.float32),
        "action": np.array([1, 0, 0][:rows]),
        "log_prob": np.full(rows, math.log(0.5), np.float32),
        "advantage": np.array([1.0, -1.0, 77.0][:rows], np.float32),
        "return": np.array([1.0, 4.0, 77.0][:rows], np.float32),
        "weight": np.array(weight, np.float32),
        "clip_ratio": 0.2,
        "value_coefficient": 0.5,
        "entropy_coefficient": 0.01,
        **other,
    }
    result = reference(loss, api="loss", memory=Memory(layout=layout, flat=flat), inputs=inputs)
    assert isinstance(result, LossResult)
    return result


def test_it_is_the_papers(loss: PpoLoss) -> None:
    result = _evaluate(loss, weight=[1.0, 1.0])
    # ratios 1.5 and 0.5, both clipped: min(1.5, 1.2) * 1 = 1.2 and min(-0.5, -0.8) = -0.8
    policy_loss = -(1.2 - 0.8) / 2
    value_loss = (1.0 + 4.0) / 2
    entropy = -(0.25 * math.log(0.25) + 0.75 * math.log(0.75))
    kl = ((0.5 - math.log(1.5)) + (-0.5 - math.log(0.5))) / 2
    np.testing.assert_allclose(result.metrics, [policy_loss, value_loss, entropy, kl, 1.0], rtol=1e-5)
    np.testing.assert_allclose(result.loss, policy_loss + 0.5 * value_loss - 0.01 * entropy, rtol=1e-5)


def test_rows_of_weight_zero_do_not_count(loss: PpoLoss) -> None:
    full, padded = _evaluate(loss, weight=[1.0, 1.0]), _evaluate(loss, weight=[1.0, 1.0, 0.0])
    np.testing.assert_allclose(padded.loss, full.loss, rtol=1e-6)
    np.testing.assert_allclose(padded.metrics, full.metrics, rtol=1e-6)


def test_means_are_weighted(loss: PpoLoss) -> None:
    # value loss (1 * 3 + 4 * 1) / 4
    assert float(_evaluate(loss, weight=[3.0, 1.0]).metrics[1]) == pytest.approx(1.75)


def test_a_policy_without_value_head_is_refused(box: Callable[..., Leaf], discrete: Callable[..., Leaf]) -> None:
    with pytest.raises(ConfigError, match="PpoLoss.loss needs the policy's value head; build ActorCriticPolicy with value=True"):
        PpoLoss(ActorCriticPolicy((box(1),), (discrete(2),), value=False))


def test_a_clipped_value_moves_no_further_than_the_limit_from_what_it_was(loss: PpoLoss) -> None:
    before = np.array([3.0, 2.0], np.float32)
    result = _evaluate(replace(loss, clip_value=True), weight=[1.0, 1.0], value=before, value_clip=0.25)
    # value 2; row 0: nearby is 2.75, and (2.75 - 1)² is more than (2 - 1)²; row 1 stays
    assert float(result.metrics[1]) == pytest.approx((1.75**2 + 4.0) / 2)
    result = _evaluate(replace(loss, clip_value=True), weight=[1.0, 1.0], value=np.array([3.0, 5.0], np.float32), value_clip=0.25)
    assert float(result.metrics[1]) == pytest.approx((1.75**2 + 4.0) / 2)  # row 1: nearby is 4.75, which is closer than 2


def test_the_penalty_is_the_estimated_divergence(loss: PpoLoss) -> None:
    plain = _evaluate(loss, weight=[1.0, 1.0])
    result = _evaluate(replace(loss, kl_penalty=True), weight=[1.0, 1.0], kl_coefficient=3.0)
    kl = ((0.5 - math.log(1.5)) + (-0.5 - math.log(0.5))) / 2
    assert float(result.loss - plain.loss) == pytest.approx(3.0 * kl, rel=1e-4)
    np.testing.assert_allclose(result.metrics, plain.metrics)


def test_rows_may_be_sequences(loss: PpoLoss) -> None:
    flat = _evaluate(loss, weight=[3.0, 1.0])
    two_steps = {
        "observation": np.ones((1, 2, 1), np.float32),
        "action": np.array([[1, 0]]),
        "log_prob": np.full((1, 2), math.log(0.5), np.float32),
        "advantage": np.array([[1.0, -1.0]], np.float32),
        "return": np.array([[1.0, 4.0]], np.float32),
    }
    result = _evaluate(replace(loss, steps=2), weight=[[3.0, 1.0]], **two_steps)
    np.testing.assert_allclose(result.loss, flat.loss, rtol=1e-6)
    np.testing.assert_allclose(result.metrics, flat.metrics, rtol=1e-6)


def test_lengths_of_sequences_are_checked(loss: PpoLoss, box: Callable[..., Leaf], discrete: Callable[..., Leaf]) -> None:
    with pytest.raises(ConfigError, match="PpoLoss needs steps >= 1, got 0; for rows of one step leave it out"):
        PpoLoss(loss.policy, steps=0)
    with pytest.raises(ConfigError, match="PpoLoss of a policy that remembers needs steps"):
        PpoLoss(ActorCriticPolicy((box(1),), (discrete(2),), recurrent="gru"))
