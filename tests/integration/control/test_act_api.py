"""`POST /v1/experiments/{id}/act`: a policy that answers over HTTP, and what it says when it cannot."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from published import TOYS, Published

from rollstream.graph import ActorCriticPolicy, build, build_acting
from rollstream.graph.declare import declare
from rollstream.graph.memory import Memory
from rollstream.spaces import Batch, json_from_columns
from rollstream.store import Store

CART = {"name": "cart", "algorithm": "ppo", "environment": {"id": "CartPole-v1"}}
PICK = {
    "name": "pick",
    "algorithm": "dqn",
    "environment": {"id": f"{TOYS}:PickEnvironment", "kwargs": {"levels": 3, "start": -1}},
}
NESTED = {"name": "nested", "algorithm": "ppo", "environment": {"id": f"{TOYS}:NestedEnvironment"}}
STANDING = [[0.01, -0.02, 0.03, 0.04], [1.0, 0.5, -0.1, -1.5], [0.0, 0.0, 0.2, 2.0]]


@pytest.fixture
def cart(control: Any, store: Store) -> Published:
    published = Published(control, store, CART)
    published.publish(0)
    return published


def test_it_acts_as_the_evaluation_does(cart: Published) -> None:
    expected = cart.policy(batch=3).greedy(cart.columns(STANDING))["action"].tolist()
    reply = cart.act(observations=STANDING)
    assert reply.status_code == 200, reply.text
    assert reply.json()["actions"] == expected
    assert [cart.act(observation=one).json()["actions"][0] for one in STANDING] == expected
    assert (reply.json()["weights_version"], reply.json()["states"], reply.json()["id"]) == (1, None, cart.id)


def test_sampled_actions_depend_on_the_seed(cart: Published) -> None:
    many = STANDING * 20
    first, again, other = (cart.act(observations=many, deterministic=False, seed=seed).json() for seed in (7, 7, 8))
    assert first["actions"] == again["actions"] != other["actions"]
    assert (first["seed"], set(first["actions"])) == (7, {0, 1})
    policy = cart.policy(batch=64, seed=7)
    columns = {name: np.resize(column, (64, *column.shape[1:])) for name, column in cart.columns(many).items()}
    assert policy.act(columns)["action"][:60].tolist() == first["actions"]


def test_a_request_without_a_seed_says_which_it_took(cart: Published) -> None:
    many = STANDING * 20
    drawn = cart.act(observations=many, deterministic=False).json()
    repeated = cart.act(observations=many, deterministic=False, seed=drawn["seed"]).json()
    assert drawn["actions"] == repeated["actions"]


def test_newer_weights_act_as_soon_as_they_are_published(cart: Published) -> None:
    many = [[x, v, a, w] for x in (-1, 1) for v in (-1, 1) for a in (-0.2, 0.2) for w in (-2, 2)]
    seen = []
    for seed in range(1, 6):
        cart.publish(seed)
        now = cart.act(observations=many).json()
        assert now["weights_version"] == seed + 1
        assert now["actions"] == cart.policy(batch=16).greedy(cart.columns(many))["action"].tolist()
        seen.append(tuple(now["actions"]))
    assert len(set(seen)) > 1


def test_o32_actions_are_those_of_the_space_whatever_its_start(start_control: Any, store: Store) -> None:
    with start_control(environment_modules=TOYS) as control:
        pick = Published(control, store, PICK)
        pick.publish(3)
        observations = [-1, 0, 1] * 10
        greedy = pick.act(observations=observations).json()["actions"]
        sampled = pick.act(observations=observations, deterministic=False, seed=1).json()["actions"]
        assert set(greedy) <= {-1, 0, 1}
        assert set(sampled) == {-1, 0, 1}
        assert greedy == pick.policy(batch=30).greedy(pick.columns(observations))["action"].tolist()
        outside = pick.act(observations=[0, 2])
        assert outside.status_code == 422
        assert outside.json()["errors"] == [
            {"path": "observations.1", "message": "must be one of the choices -1 to 1, got 2"},
        ]


def test_nested_observations_give_nested_actions(start_control: Any, store: Store) -> None:
    with start_control(environment_modules=TOYS) as control:
        nested = Published(control, store, NESTED)
        nested.publish(0)
        observation = {"a": {"x": [0.25, -1.0], "y": -2}, "b": [[[0, 1, 2], [253, 254, 255]], [1, 0, 1]]}
        reply = nested.act(observation=observation)
        assert reply.status_code == 200, reply.text
        expected = nested.policy(batch=1).greedy(nested.columns([observation]))
        assert reply.json()["actions"] == json_from_columns(nested.actions, "action", expected)
        chosen, grid, wheels = reply.json()["actions"][0]
        assert chosen in (-1, 0, 1)
        assert np.shape(grid) == (2, 2)
        assert wheels.keys() == {"torque", "brake"}
        wrong = {"a": {"x": [0.25, "fast"]}, "b": [[[0, 1, 2], [253, 254, 256]], [1, 0, 1]]}
        errors = {error["path"]: error["message"] for error in nested.act(observation=wrong).json()["errors"]}
        assert errors == {
            "observation.a.x.1": "must be a number or lists of them, got text",
            "observation.a.y": "is missing",
            "observation.b.0.1.2": "must be a whole number that fits uint8, got 256",
        }


def test_a_recurrent_policy_gives_its_state_and_takes_it_back(control: Any, store: Store) -> None:
    cart = Published(control, store, CART | {"settings": {"recurrent": "gru", "recurrent_units": 8}})
    cart.publish(0)
    first = cart.act(observation=STANDING[0]).json()
    assert np.shape(first["states"][0]["torso"]) == (8,)
    second = cart.act(observation=STANDING[1], state=first["states"][0]).json()
    both = cart.act(observations=[STANDING[1]] * 2, states=first["states"] * 2).json()
    for name, memory in second["states"][0].items():
        np.testing.assert_allclose([state[name] for state in both["states"]], [memory] * 2, atol=1e-6)
        assert not np.allclose(cart.act(observation=STANDING[1]).json()["states"][0][name], memory)
    wrong = cart.act(observation=STANDING[1], state={"torso": [0.0] * 7})
    assert wrong.status_code == 422
    assert {error["path"]: error["message"] for error in wrong.json()["errors"]} == {
        "state.torso": "must have shape [8], got [7]",
        "state.value_torso": "is missing",
    }


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({}, "give an observation, or a list of observations"),
        ({"observation": STANDING[0], "observations": STANDING}, "give either observation or observations, not both"),
        ({"observation": STANDING[0], "state": {}}, "this policy remembers nothing: leave the state out"),
        ({"observations": STANDING, "states": [{}]}, "there are 3 observations and 1 states: give one state for each"),
        ({"observations": []}, "observations: Tuple should have at least 1 item"),
        ({"observation": STANDING[0], "greedy": True}, "greedy"),
        ({"observation": STANDING[0], "seed": -1}, "seed: Input should be greater than or equal to 0"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused(cart: Published, body: dict[str, Any], said: str) -> None:
    reply = cart.act(**body)
    assert (reply.status_code, reply.json()["type"]) == (422, "urn:rollstream:problem:invalid")
    assert said in reply.json()["detail"]


def test_before_the_first_weights_it_is_a_conflict(control: Any, store: Store) -> None:
    reply = Published(control, store, CART).act(observation=STANDING[0])
    assert (reply.status_code, reply.json()["type"]) == (409, "urn:rollstream:problem:no-weights")
    assert "has no weights to act with: its learner publishes the first when it begins" in reply.json()["detail"]


def test_an_environment_that_control_does_not_have_is_a_conflict(start_control: Any) -> None:
    with start_control(environment_modules="nowhere_at_all") as control:
        far = CART | {"environment": {"id": "nowhere_at_all:Far"}}
        experiment = control.http.post("/v1/experiments", json=far).json()["id"]
        reply = control.http.post(f"/v1/experiments/{experiment}/act", json={"observation": 0})
        assert (reply.status_code, reply.json()["type"]) == (409, "urn:rollstream:problem:no-spaces")
        assert "is not installed where control runs, so its spaces are not known here" in reply.json()["detail"]


def test_an_unknown_experiment_is_a_404(control: Any) -> None:
    reply = control.http.post("/v1/experiments/nothing-000000/act", json={"observation": 0})
    assert (reply.status_code, reply.json()["type"]) == (404, "urn:rollstream:problem:no-experiment")


def test_a_viewer_may_let_it_act_and_a_stranger_may_not(start_control: Any, store: Store) -> None:
    with start_control(operator_token="operator-secret", viewer_token="viewer-secret", token="operator-secret") as control:
        cart = Published(control, store, CART)
        cart.publish(0)
        for token, status in (("viewer-secret", 200), ("wrong", 401)):
            headers = {"Authorization": f"Bearer {token}"}
            reply = control.http.post(f"/v1/experiments/{cart.id}/act", json={"observation": STANDING[0]}, headers=headers)
            assert reply.status_code == status


def test_training_evaluation_and_act_normalize_alike(control: Any, store: Store) -> None:
    """A known fault elsewhere: a normalizer whose statistics stay in the training process."""
    pytest.importorskip("torch")
    spec = CART | {"settings": {"normalize_observations": True, "mode": "torch", "batch_rows": 64}}
    cart = Published(control, store, spec)
    generator = np.random.default_rng(0)
    scale, shift = np.float32([1.0, 20.0, 0.1, 3.0]), np.float32([5.0, -40.0, 0.0, 1.0])
    seen = generator.standard_normal((256, 4)).astype(np.float32) * scale + shift
    learning = cart.agent.learning(seed=0)
    cart.publish_tensors(learning.tensors(env_steps=0))
    rows = cart.policy(batch=256).act({"observation": seen})
    learned = {"observation": seen, **rows, "advantage": rows["value"], "return": rows["value"]}
    learning.learn(Batch(columns=learned, env_steps=256, version=1, newest_version=1), env_steps=256)
    tensors = learning.tensors(env_steps=256)
    cart.publish_tensors(tensors)

    asked = (generator.standard_normal((64, 4)).astype(np.float32) * scale + shift).tolist()
    columns = cart.columns(asked)
    evaluation, actor = cart.policy(batch=64).greedy(columns), cart.policy(batch=64, seed=3).act(columns)
    assert cart.act(observations=asked).json()["actions"] == evaluation["action"].tolist()
    assert cart.act(observations=asked, deterministic=False, seed=3).json()["actions"] == actor["action"].tolist()

    declared = declare(cart.agent.policy)
    memory = Memory(
        layout=declared.layout,
        flat=declared.layout.join({name: tensors[name] for name in declared.layout.names}),
        state_layout=declared.state_layout,
        state=declared.state_layout.join({name: tensors[name] for name in declared.state_layout.names}),
    )
    training = build(cart.agent.policy, mode="torch", rows=64, apis=["evaluate"], memory=memory)
    judged = training("evaluate", observation=columns["observation"], action=actor["action"])
    np.testing.assert_allclose(judged["log_prob"], actor["log_prob"], atol=1e-5)

    plain = ActorCriticPolicy(cart.observation, cart.actions, hidden=(64, 64), shared_torso=False)
    by_hand = build_acting(plain, batch=64)
    by_hand.load(memory.flat)
    centred = (np.float32(asked) - seen.mean(axis=0)) / seen.std(axis=0)
    np.testing.assert_allclose(by_hand.values({"observation": np.clip(centred, -10, 10)}), actor["value"], atol=1e-3)
    assert not np.allclose(by_hand.values(columns), actor["value"], atol=0.1)
