"""The actor-critic policy on every kind of action space."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import gymnasium
import numpy as np
import pytest

from rollstream.graph import ActorCriticPolicy
from rollstream.graph.component_test import component_test
from rollstream.spaces import Columns, leaves

OBSERVATION = leaves(gymnasium.spaces.Box(-1.0, 1.0, (3,)), "observation")
ROWS = 200

FORMS: Mapping[str, Mapping[str, Any]] = {
    "clip": {},
    "squash": {"bounds": "squash", "state_dependent_std": True, "shared_torso": False},
    "autoregressive": {"autoregressive": True, "bounds": "squash"},
}


@pytest.fixture(params=sorted(FORMS))
def policy(request: pytest.FixtureRequest, actions: gymnasium.Space[Any]) -> ActorCriticPolicy:
    return ActorCriticPolicy(OBSERVATION, leaves(actions, "action"), hidden=(8,), **FORMS[request.param])


def values_of(space: gymnasium.Space[Any], columns: Columns, row: int, name: str = "action") -> Any:
    """A value of the space from its columns."""
    if isinstance(space, gymnasium.spaces.Dict):
        return {key: values_of(child, columns, row, f"{name}.{key}") for key, child in space.spaces.items()}
    if isinstance(space, gymnasium.spaces.Tuple):
        return tuple(values_of(child, columns, row, f"{name}.{number}") for number, child in enumerate(space.spaces))
    value = columns[name][row]
    return np.asarray(value) if isinstance(space, gymnasium.spaces.Box) else value


def observed(generator: np.random.Generator, rows: int = ROWS) -> Columns:
    return {"observation": generator.standard_normal((rows, 3)).astype(np.float32)}


@pytest.mark.parametrize("scale", [0.0, 1.0, 100.0])
def test_actions_lie_in_the_space_and_all_is_finite(
    policy: ActorCriticPolicy, actions: gymnasium.Space[Any], trained: Callable[..., Any], scale: float
) -> None:
    made = trained(policy, rows=ROWS, scale=scale)
    observation = observed(made.generator)
    drawn, best = made.policy.act(observation), made.policy.greedy(observation)
    for row in range(ROWS):
        assert actions.contains(values_of(actions, drawn, row))
        assert actions.contains(values_of(actions, best, row))
    assert all(np.isfinite(column).all() for column in drawn.values())


def test_what_was_drawn_is_judged_as_it_was_drawn(policy: ActorCriticPolicy, trained: Callable[..., Any]) -> None:
    made = trained(policy, rows=ROWS)
    observation = observed(made.generator)
    drawn = made.policy.act(observation)
    actions = {item.name: drawn[item.name] for item in policy.action_columns}
    judged = made.reference("evaluate", {**observation, **actions})
    np.testing.assert_allclose(judged.log_prob, drawn["log_prob"], rtol=2e-4, atol=2e-5)
    np.testing.assert_allclose(judged.value, drawn["value"], rtol=1e-4, atol=1e-5)
    assert judged.entropy.shape == (ROWS,)


def test_taped_numpy_and_torch_agree_and_slopes_are_right(policy: ActorCriticPolicy) -> None:
    component_test(policy, modes=("numpy", "torch"))


@pytest.mark.parametrize("form", sorted(FORMS))
def test_all_quick_modes_agree_on_a_nested_space(form: str, nested: gymnasium.Space[Any]) -> None:
    component_test(ActorCriticPolicy(OBSERVATION, leaves(nested, "action"), hidden=(8,), **FORMS[form]))


def test_rows_hold_what_evaluation_reads(policy: ActorCriticPolicy) -> None:
    stored = {column.name for column in policy.extra_columns} | {leaf.name for leaf in policy.actions}
    assert {item.name for item in policy.action_columns} <= stored
    assert {"log_prob", "value"} <= stored


def test_probabilities_of_all_actions_sum_to_one(trained: Callable[..., Any]) -> None:
    space = gymnasium.spaces.Dict({"a": gymnasium.spaces.Discrete(3, start=1), "b": gymnasium.spaces.MultiDiscrete([2, 2])})
    policy = ActorCriticPolicy(OBSERVATION, leaves(space, "action"), hidden=(8,), autoregressive=True)
    made = trained(policy)
    every = np.array([(a, b, c) for a in (1, 2, 3) for b in (0, 1) for c in (0, 1)])
    observation = {"observation": np.repeat(observed(made.generator, 1)["observation"], len(every), 0)}
    judged = made.reference("evaluate", {**observation, "action.a": every[:, 0], "action.b": every[:, 1:]})
    np.testing.assert_allclose(np.exp(judged.log_prob).sum(), 1.0, rtol=1e-5)


def test_actions_come_as_often_as_they_are_probable(trained: Callable[..., Any]) -> None:
    rows = 20_000
    space = gymnasium.spaces.Dict({"a": gymnasium.spaces.Discrete(2), "b": gymnasium.spaces.MultiBinary(2)})
    policy = ActorCriticPolicy(OBSERVATION, leaves(space, "action"), hidden=(8,), autoregressive=True)
    made = trained(policy, rows=rows)
    observation = {"observation": np.repeat(observed(made.generator, 1)["observation"], rows, 0)}
    drawn = made.policy.act(observation)
    code = drawn["action.a"] * 4 + drawn["action.b"] @ [2, 1]
    found = np.bincount(code, minlength=8)
    every = np.array([(a, b, c) for a in (0, 1) for b in (0, 1) for c in (0, 1)])
    inputs = {"observation": observation["observation"][:8], "action.a": every[:, 0], "action.b": every[:, 1:].astype(np.int8)}
    expected = rows * np.exp(made.reference("evaluate", inputs).log_prob)
    chi_square = float(((found - expected) ** 2 / expected).sum())
    assert chi_square < 24.3  # 7 degrees of freedom: exceeded once in 1,000


def test_a_later_leaf_depends_on_an_earlier_one_only_when_autoregressive(trained: Callable[..., Any]) -> None:
    space = gymnasium.spaces.Dict({"a": gymnasium.spaces.Discrete(2), "b": gymnasium.spaces.Discrete(2)})
    ratios = []
    for autoregressive in (False, True):
        policy = ActorCriticPolicy(OBSERVATION, leaves(space, "action"), hidden=(8,), autoregressive=autoregressive)
        made = trained(policy)
        inputs = {
            "observation": np.zeros((4, 3), np.float32),
            "action.a": np.array([0, 0, 1, 1]),
            "action.b": np.array([0, 1] * 2),
        }
        log_prob = made.reference("evaluate", inputs).log_prob
        ratios.append((log_prob[0] - log_prob[1]) - (log_prob[2] - log_prob[3]))
    assert ratios[0] == pytest.approx(0.0, abs=1e-6)
    assert abs(ratios[1]) > 0.1


def test_a_squashed_box_is_worked_by_hand(trained: Callable[..., Any]) -> None:
    policy = ActorCriticPolicy(
        OBSERVATION, leaves(gymnasium.spaces.Box(-2.0, 4.0, (1,)), "action"), hidden=(), value=False, bounds="squash"
    )
    made = trained(policy, rows=1)
    flat = {"policy.mean.weight": np.zeros((3, 1), np.float32), "policy.mean.bias": np.full(1, 0.5, np.float32)}
    flat["policy.log_std"] = np.log(np.full(1, 2.0, np.float32))
    made.acting.load(made.acting.layout.join(flat))
    found = made.acting.act(observed(made.generator, 1), made.generator, noise={"noise.action": np.ones((1, 1), np.float32)})
    assert found["latent.action"].tolist() == [[2.5]]
    np.testing.assert_allclose(found["action"], [[1 + 3 * np.tanh(2.5)]], rtol=1e-6)
    expected = -0.5 - np.log(2.0) - 0.5 * np.log(2 * np.pi) - np.log(1 - np.tanh(2.5) ** 2)
    np.testing.assert_allclose(found["log_prob"], [expected], rtol=1e-5)


def test_a_clipped_box_is_worked_by_hand(trained: Callable[..., Any]) -> None:
    policy = ActorCriticPolicy(OBSERVATION, leaves(gymnasium.spaces.Box(-2.0, 4.0, (1,)), "action"), hidden=(), value=False)
    made = trained(policy, rows=2)
    flat = {"policy.mean.weight": np.zeros((3, 1), np.float32), "policy.mean.bias": np.full(1, 0.5, np.float32)}
    flat["policy.log_std"] = np.log(np.full(1, 2.0, np.float32))
    made.acting.load(made.acting.layout.join(flat))
    noise = np.array([[1.0], [-0.5]], np.float32)
    found = made.acting.act(observed(made.generator, 2), made.generator, noise={"noise.action": noise})
    assert found["latent.action"].tolist() == [[2.5], [-0.5]]
    assert found["action"].tolist() == [[4.0], [-0.5]]  # cut at the upper bound, and 1 + 3 * -0.5
    expected = -0.5 * noise[:, 0] ** 2 - np.log(2.0) - 0.5 * np.log(2 * np.pi)
    np.testing.assert_allclose(found["log_prob"], expected, rtol=1e-6)
