"""Every component in every mode against plain NumPy, and its gradient against finite differences."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from rollstream.graph import ActorCriticPolicy, DoubleQLoss, PpoLoss, QPolicy
from rollstream.graph.component_test import QUICK_MODES, component_test
from rollstream.spaces import Leaf


@pytest.mark.parametrize("activation", ["tanh", "relu"])
@pytest.mark.parametrize("shared_torso", [True, False])
def test_the_categorical_policy(observation: tuple[Leaf, ...], action: Leaf, activation: str, shared_torso: bool) -> None:
    policy = ActorCriticPolicy(observation, (action,), hidden=(8, 8), activation=activation, shared_torso=shared_torso)  # type: ignore[arg-type]
    compared = component_test(policy)
    assert {(item.api, item.mode) for item in compared} == {
        (name, mode) for name in policy.apis for mode in (*QUICK_MODES, "gradient")
    }
    component_test(PpoLoss(policy), rows=16)


@pytest.mark.parametrize("dueling", [False, True])
def test_the_action_value_policy(observation: tuple[Leaf, ...], action: Leaf, dueling: bool) -> None:
    policy = QPolicy(observation, (action,), hidden=(8, 8), dueling=dueling)
    component_test(policy)
    component_test(DoubleQLoss(policy), rows=16)
    component_test(DoubleQLoss(policy, huber_delta=0.1), rows=16, seed=3)


def test_a_policy_without_value_head_or_hidden_layer(observation: tuple[Leaf, ...], action: Leaf) -> None:
    component_test(ActorCriticPolicy(observation, (action,), hidden=(), value=False))
