"""Action masks: what is forbidden is never done, and has probability 0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest

from rollstream.errors import EnvironmentFault, SpaceError
from rollstream.graph import ActorCriticPolicy, QPolicy, build
from rollstream.graph.memory import Memory
from rollstream.graph.modes.executables import Mode
from rollstream.graph.policies.masks import unanswerable
from rollstream.spaces import Columns, Leaf, leaves

ROWS = 300
MOVE = gymnasium.spaces.Discrete(4, start=10)
PAIR = gymnasium.spaces.MultiDiscrete([2, 3])


def observation(choices: int) -> tuple[Leaf, ...]:
    space = {"x": gymnasium.spaces.Box(-1.0, 1.0, (3,)), "action_mask": gymnasium.spaces.MultiBinary(choices)}
    return leaves(gymnasium.spaces.Dict(space), "observation")


def masked(generator: np.random.Generator, mask: list[int], rows: int = ROWS) -> Columns:
    x = generator.standard_normal((rows, 3)).astype(np.float32)
    return {"observation.x": x, "observation.action_mask": np.tile(np.array(mask, np.int8), (rows, 1))}


def test_only_allowed_actions_are_drawn(trained: Callable[..., Any]) -> None:
    made = trained(ActorCriticPolicy(observation(4), leaves(MOVE, "action"), hidden=(8,)), rows=ROWS)
    columns = masked(made.generator, [0, 1, 1, 0])
    assert set(made.policy.act(columns)["action"].tolist()) == {11, 12}
    assert set(made.policy.greedy(columns)["action"].tolist()) <= {11, 12}


def test_forbidden_actions_have_probability_zero_and_entropy_is_over_the_rest(trained: Callable[..., Any]) -> None:
    made = trained(ActorCriticPolicy(observation(4), leaves(MOVE, "action"), hidden=(8,)), rows=4)
    columns = masked(made.generator, [0, 1, 0, 0], rows=4)
    judged = made.reference("evaluate", {**columns, "action": np.arange(10, 14)})
    assert np.exp(judged.log_prob).tolist() == [0.0, 1.0, 0.0, 0.0]
    assert judged.entropy.tolist() == [0.0] * 4


def test_the_mask_is_no_feature(trained: Callable[..., Any]) -> None:
    made = trained(ActorCriticPolicy(observation(4), leaves(MOVE, "action"), hidden=(8,)), rows=ROWS)
    some, others = masked(made.generator, [0, 1, 0, 1]), masked(made.generator, [1, 1, 0, 1])
    value = made.policy.values({**some, "observation.x": others["observation.x"]})
    np.testing.assert_array_equal(value, made.policy.values(others))


def test_each_decision_has_its_part_of_the_mask(trained: Callable[..., Any]) -> None:
    actions = leaves(gymnasium.spaces.Dict({"a": PAIR, "b": MOVE}), "action")
    made = trained(ActorCriticPolicy(observation(9), actions, hidden=(8,)), rows=ROWS)
    drawn = made.policy.act(masked(made.generator, [0, 1, 1, 0, 1, 1, 0, 0, 1]))
    assert set(drawn["action.a"][:, 0].tolist()) == {1}
    assert set(drawn["action.a"][:, 1].tolist()) == {0, 2}
    assert set(drawn["action.b"].tolist()) == {10, 13}


@pytest.mark.parametrize("mode", ["torch", "jax", "onnx"])
def test_modes_agree_with_numpy(trained: Callable[..., Any], mode: Mode) -> None:
    made = trained(ActorCriticPolicy(observation(5), leaves(PAIR, "action"), hidden=(8,)), rows=50)
    columns = {**masked(made.generator, [0, 1, 1, 1, 0], rows=50), "noise.action": made.generator.random((50, 2), np.float32)}
    memory = Memory(layout=made.acting.layout, flat=made.flat)
    found = build(made.component, mode=mode, rows=50, apis=("act",), memory=memory)("act", **columns)
    expected = made.reference("act", columns)
    np.testing.assert_array_equal(found["action"], expected["action"])
    np.testing.assert_allclose(found["log_prob"], expected["log_prob"], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("epsilon", [0.0, 1.0])
def test_a_value_policy_never_takes_what_is_forbidden(trained: Callable[..., Any], epsilon: float) -> None:
    made = trained(QPolicy(observation(4), leaves(MOVE, "action"), hidden=(8,)), rows=ROWS)
    columns = masked(made.generator, [0, 1, 0, 1])
    found = made.acting.act(columns, made.generator, epsilon=epsilon)["action"]
    assert set(found.tolist()) <= {11, 13}
    assert epsilon == 0.0 or abs(int((found == 11).sum()) - ROWS / 2) < 4 * np.sqrt(ROWS / 4)
    values = made.reference("q_values", columns)
    assert (values[:, [0, 2]] == -1e9).all()
    assert np.abs(values[:, [1, 3]]).max() < 100


def test_a_mask_that_forbids_everything_is_a_fault_of_the_environment(trained: Callable[..., Any]) -> None:
    made = trained(ActorCriticPolicy(observation(5), leaves(PAIR, "action"), hidden=(8,)), rows=3)
    columns = masked(made.generator, [1, 1, 1, 0, 1], rows=3)
    columns["observation.action_mask"][1] = [1, 1, 0, 0, 0]
    message = "observation.action_mask of copy 1 forbids every choice, so there is nothing to do; an environment must"
    with pytest.raises(EnvironmentFault, match=message):
        made.policy.act(columns)
    with pytest.raises(EnvironmentFault, match=message):
        made.policy.greedy(columns)


def test_where_an_episode_is_over_a_mask_may_forbid_everything(trained: Callable[..., Any]) -> None:
    made = trained(ActorCriticPolicy(observation(5), leaves(PAIR, "action"), hidden=(8,)), rows=2)
    columns = masked(made.generator, [0, 0, 0, 0, 0], rows=2)
    made.policy.begin(first=np.zeros(2, bool), over=np.ones(2, bool))
    assert np.isfinite(made.policy.act(columns)["log_prob"]).all()


def test_rows_without_an_answer_are_found() -> None:
    mask = np.array([[1, 0, 0, 0, 1], [1, 1, 0, 0, 0], [0, 0, 1, 1, 1]])
    assert unanswerable(mask, leaves(PAIR, "action")).tolist() == [False, True, True]


def test_a_mask_of_another_size_and_a_second_one_are_refused() -> None:
    with pytest.raises(
        SpaceError, match="action_mask: an action mask needs one entry for each choice, 4 in all for action, got 3"
    ):
        ActorCriticPolicy(observation(3), leaves(MOVE, "action"))
    other = Leaf(name="observation.other.action_mask", kind="multi_binary", dtype="|i1", shape=(4,))
    with pytest.raises(SpaceError, match="there is a second action mask, observation.action_mask; put them into one"):
        ActorCriticPolicy((*observation(4), other), leaves(MOVE, "action"))
