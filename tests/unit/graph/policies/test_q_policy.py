"""The epsilon-greedy policy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from rollstream.graph import Acting, QPolicy, build_acting
from rollstream.graph.memory import Memory
from rollstream.graph.reference import reference
from rollstream.spaces import Leaf

ROWS = 4000
OBSERVATION = {"observation": np.ones((ROWS, 1), np.float32)}


@pytest.fixture
def policy(box: Callable[..., Leaf], discrete: Callable[..., Leaf]) -> QPolicy:
    return QPolicy((box(1),), (discrete(4),), hidden=())


@pytest.fixture
def acting(policy: QPolicy) -> Acting:
    """Its best action is 2."""
    acting = build_acting(policy, batch=ROWS)
    acting.load(acting.layout.join({"head.weight": np.array([[0, 1, 2, -1]], np.float32), "head.bias": np.zeros(4, np.float32)}))
    return acting


def test_without_epsilon_the_best_action_is_taken(acting: Acting, generator: np.random.Generator) -> None:
    assert set(acting.act(OBSERVATION, generator, epsilon=0.0)["action"].tolist()) == {2}
    assert set(acting.greedy(OBSERVATION)["action"].tolist()) == {2}


def test_with_epsilon_one_all_actions_are_equally_likely(acting: Acting, generator: np.random.Generator) -> None:
    share = np.bincount(acting.act(OBSERVATION, generator, epsilon=1.0)["action"], minlength=4) / ROWS
    np.testing.assert_allclose(share, 0.25, atol=0.03)


def test_epsilon_is_the_share_of_random_actions(acting: Acting, generator: np.random.Generator) -> None:
    share = np.bincount(acting.act(OBSERVATION, generator, epsilon=0.4)["action"], minlength=4) / ROWS
    np.testing.assert_allclose(share, [0.1, 0.1, 0.7, 0.1], atol=0.03)


def test_each_environment_may_have_an_epsilon_of_its_own(acting: Acting, generator: np.random.Generator) -> None:
    epsilon = np.repeat([0.0, 1.0], ROWS // 2)
    action = acting.act(OBSERVATION, generator, epsilon=epsilon)["action"]
    assert set(action[: ROWS // 2].tolist()) == {2}
    assert set(action[ROWS // 2 :].tolist()) == {0, 1, 2, 3}


def test_action_values_are_given_for_all_actions(policy: QPolicy, acting: Acting) -> None:
    flat = acting.layout.join({"head.weight": np.array([[0, 1, 2, -1]], np.float32), "head.bias": np.ones(4, np.float32)})
    inputs = {"observation": np.array([[2.0]], np.float32)}
    assert reference(policy, api="q_values", memory=Memory(layout=acting.layout, flat=flat), inputs=inputs).tolist() == [
        [1, 3, 5, -1]
    ]
