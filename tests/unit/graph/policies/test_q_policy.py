"""The epsilon-greedy policy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rollstream.errors import ConfigError
from rollstream.graph import Acting, QPolicy, build_acting, declare
from rollstream.graph.backends.numpy_ops import NumpyOps
from rollstream.graph.component_test import component_test
from rollstream.graph.memory import Memory
from rollstream.graph.reference import reference
from rollstream.graph.scope import Scope
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


@pytest.mark.parametrize("settings", [{}, {"dueling": True}, {"distribution": "c51", "atoms": 5}, {"distribution": "quantile"}])
def test_modes_agree_and_slopes_are_right(
    settings: dict[str, Any], box: Callable[..., Leaf], discrete: Callable[..., Leaf]
) -> None:
    component_test(QPolicy((box(3),), (discrete(4, start=2),), hidden=(8,), **settings), modes=("numpy", "torch"))


def test_action_values_are_means_of_their_distributions(box: Callable[..., Leaf], discrete: Callable[..., Leaf]) -> None:
    inputs = {"observation": np.ones((1, 2), np.float32)}
    for distribution in ("c51", "quantile"):
        policy = QPolicy((box(2),), (discrete(3),), hidden=(8,), distribution=distribution, atoms=7, low=-2.0, high=4.0)  # type: ignore[arg-type]
        layout = declare(policy).layout
        memory = Memory(layout=layout, flat=layout.init(0))
        values = reference(policy, api="q_values", memory=memory, inputs=inputs)
        if distribution == "c51":
            probability = np.exp(reference(policy, api="q_log_probs", memory=memory, inputs=inputs))
            assert policy.support.tolist() == [-2, -1, 0, 1, 2, 3, 4]
            np.testing.assert_allclose(values, probability @ policy.support, rtol=1e-5)
        else:
            quantiles = reference(policy, api="q_quantiles", memory=memory, inputs=inputs)
            np.testing.assert_allclose(values, quantiles.mean(-1), rtol=1e-5, atol=1e-6)


def test_what_the_head_does_not_know_is_refused(policy: QPolicy, box: Callable[..., Leaf], discrete: Callable[..., Leaf]) -> None:
    inputs = {"observation": np.ones((1, 1), np.float32)}
    layout = declare(policy).layout
    memory = Memory(layout=layout, flat=layout.init(0))
    with pytest.raises(ConfigError, match="QPolicy.q_log_probs: needs distribution='c51', this policy has None"):
        reference(policy, api="q_log_probs", memory=memory, inputs=inputs)
    with pytest.raises(ConfigError, match="QPolicy.q_quantiles: needs distribution='quantile', this policy has None"):
        reference(policy, api="q_quantiles", memory=memory, inputs=inputs)
    with pytest.raises(ConfigError, match="QPolicy.support: needs distribution='c51', this policy has None"):
        _ = policy.support
    with pytest.raises(ConfigError, match="dueling quantiles are not there; use dueling=False"):
        QPolicy((box(1),), (discrete(4),), dueling=True, distribution="quantile")


def test_indices_of_actions_are_counted_from_the_start(box: Callable[..., Leaf], discrete: Callable[..., Leaf]) -> None:
    policy = QPolicy((box(1),), (discrete(3, start=-1),), hidden=())
    assert policy.action_index(Scope(NumpyOps()), {"action": np.array([-1, 1])}).tolist() == [0, 2]


NOISY: Any = [
    {"hidden": (8,)},
    {"hidden": (8, 6)},
    {"hidden": (8, 6), "dueling": True},
    {"hidden": (8, 6), "distribution": "c51", "atoms": 5, "dueling": True},
    {"hidden": (8,), "distribution": "c51", "atoms": 5},
    {"hidden": (8, 6), "distribution": "quantile", "atoms": 5},
]


@pytest.mark.parametrize("settings", NOISY)
def test_modes_agree_on_noisy_policies(settings: dict[str, Any], box: Callable[..., Leaf], discrete: Callable[..., Leaf]) -> None:
    component_test(QPolicy((box(3),), (discrete(4),), noisy=True, **settings), modes=("numpy", "torch"))


def test_noisy_policies_explore_without_epsilon_and_are_greedy_by_their_means(
    box: Callable[..., Leaf], discrete: Callable[..., Leaf], generator: np.random.Generator
) -> None:
    acting = build_acting(QPolicy((box(1),), (discrete(4),), hidden=(8, 8), noisy=True), batch=ROWS)
    acting.load(acting.layout.init(3))
    actions = acting.act(OBSERVATION, generator, epsilon=0.0)["action"]
    assert len(set(actions.tolist())) > 1, "the same observation in every row, and noise of its own in each"
    assert len(set(acting.greedy(OBSERVATION)["action"].tolist())) == 1


def test_a_noisy_policy_without_hidden_layers_is_refused(box: Callable[..., Leaf], discrete: Callable[..., Leaf]) -> None:
    with pytest.raises(ConfigError, match="noisy layers need hidden layers in front of them; give hidden at least one width"):
        QPolicy((box(1),), (discrete(4),), hidden=(), noisy=True)


def test_a_policy_that_tells_its_values_gives_those_of_the_action_and_of_the_best(
    box: Callable[..., Leaf], discrete: Callable[..., Leaf], generator: np.random.Generator
) -> None:
    policy = QPolicy((box(1),), (discrete(4),), hidden=(), tells_values=True)
    acting = build_acting(policy, batch=ROWS)
    acting.load(acting.layout.join({"head.weight": np.array([[0, 1, 2, -1]], np.float32), "head.bias": np.zeros(4, np.float32)}))
    out = acting.act(OBSERVATION, generator, epsilon=1.0)
    assert [column.name for column in policy.extra_columns] == ["q_taken", "q_max"]
    assert out["q_max"].tolist() == [2.0] * ROWS
    assert out["q_taken"].tolist() == np.array([0.0, 1.0, 2.0, -1.0])[out["action"]].tolist()
