"""`POST /v1/experiments/{id}/act`: a policy that answers over HTTP, and what it says when it cannot."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rollstream.acting import Policy
from rollstream.algorithms import make_agent
from rollstream.config import EnvironmentSpec
from rollstream.envs import inspect_environment
from rollstream.graph import build_acting, declare
from rollstream.seeding import child_generator
from rollstream.spaces import columns_from_json, json_from_columns
from rollstream.store import Experiments, Store
from rollstream.weights import WeightStore

TOYS = "rollstream.envs.toy"
CART = {"name": "cart", "algorithm": "ppo", "environment": {"id": "CartPole-v1"}}
PICK = {
    "name": "pick",
    "algorithm": "dqn",
    "environment": {"id": f"{TOYS}:PickEnvironment", "kwargs": {"levels": 3, "start": -1}},
}
NESTED = {"name": "nested", "algorithm": "ppo", "environment": {"id": f"{TOYS}:NestedEnvironment"}}
STANDING = [[0.01, -0.02, 0.03, 0.04], [1.0, 0.5, -0.1, -1.5], [0.0, 0.0, 0.2, 2.0]]


class Published:
    """An experiment in the cell with weights, and its policy in this process."""

    def __init__(self, control: Any, store: Store, spec: dict[str, Any]) -> None:
        reply = control.http.post("/v1/experiments", json=spec)
        assert reply.status_code == 201, reply.text
        self.id = reply.json()["id"]
        self.http = control.http
        self.store = store
        self.version = 0
        told = Experiments(store).spec(self.id)
        seen = inspect_environment(EnvironmentSpec.model_validate(told.environment), allow=(TOYS,))
        self.observation, self.actions = seen.observation_leaves, seen.action_leaves
        self.agent = make_agent(told.algorithm, told.settings, observation=self.observation, actions=self.actions)
        self.extra = {"scalar.epsilon": np.float32([0.5])} if told.algorithm == "dqn" else {}

    def publish(self, seed: int) -> None:
        declared = declare(self.agent.policy)
        tensors = {
            **declared.layout.split(declared.layout.init(seed) + np.float32(0.01)),
            **declared.state_layout.split(declared.state_layout.init(seed)),
        }
        self.version += 1
        WeightStore(self.store, experiment=self.id).publish(self.version, {**tensors, **self.extra})

    def policy(self, *, batch: int, seed: int = 0) -> Policy:
        acting = build_acting(self.agent.policy, batch=batch)
        generator = child_generator(seed, "act")
        policy = Policy(acting=acting, actions=self.agent.actions, extra=self.agent.extra_columns, generator=generator)
        weights = WeightStore(self.store, experiment=self.id).fetch()
        assert weights is not None
        policy.load(weights)
        return policy

    def columns(self, observations: list[Any]) -> dict[str, Any]:
        return columns_from_json(self.observation, "observation", {str(at): value for at, value in enumerate(observations)})

    def act(self, **body: Any) -> Any:
        return self.http.post(f"/v1/experiments/{self.id}/act", json=body)


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
