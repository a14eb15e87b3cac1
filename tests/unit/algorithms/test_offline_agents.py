"""What behavior cloning, MARWIL and CQL make of recorded data."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from rollstream.algorithms import make_agent, make_flow, takes_actors
from rollstream.algorithms.imitating import latents
from rollstream.errors import ConfigError
from rollstream.flow import Description
from rollstream.graph.losses import ConservativeSoftLoss, DoubleQLoss
from rollstream.learning import LearnerProcess
from rollstream.spaces import Batch, Leaf, row_spec

OBSERVATION = (Leaf(name="observation", kind="box", dtype="<f4", shape=(3,)),)
TORQUE = Leaf(name="action", kind="box", dtype="<f4", shape=(2,), low=(-2.0, 0.0), high=(2.0, 6.0))
CHOICE = Leaf(name="action", kind="discrete", dtype="<i8", shape=(), counts=(2,), starts=(0,))
SMALL = {"batch_items": 4, "hidden": [8], "mode": "numpy"}


def agent(name: str, action: Leaf = CHOICE, **settings: Any) -> Any:
    return make_agent(name, {**SMALL, **settings}, observation=OBSERVATION, actions=(action,))


def recorded(**columns: Any) -> Batch:
    """Four times the same observation."""
    made = {"observation": np.ones((4, 3), np.float32), "next_observation": np.ones((4, 3), np.float32)}
    made |= {"reward": np.zeros(4, np.float32), "discount": np.zeros(4, np.float32)}
    return Batch(columns={**made, **columns}, env_steps=0, version=0, newest_version=0)


@pytest.mark.parametrize("name", ["bc", "marwil", "cql"])
def test_flows_have_no_edge_and_need_no_actors(name: str) -> None:
    made = agent(name)
    flow = Description(make_flow(name, made, actors=0), tables=made.table_names)
    assert (flow.edges, flow.tables, takes_actors(name)) == ((), ("replay",), False)


def test_actions_are_imitated_where_the_policy_draws_them() -> None:
    columns = {"action": np.array([[-2.0, 6.0], [1.0, 3.0]], np.float32)}
    clipped = latents((TORQUE,), columns, bounds="clip")["latent.action"]
    squashed = latents((TORQUE,), columns, bounds="squash")["latent.action"]
    np.testing.assert_allclose(clipped, [[-1.0, 1.0], [0.5, 0.0]], atol=1e-6)
    np.testing.assert_allclose(np.tanh(squashed), 0.999 * clipped, atol=1e-6)


def test_bc_learns_what_was_done() -> None:
    learning = agent("bc", learning_rate=0.05).learning(seed=0)
    told = [learning.learn(recorded(action=np.ones(4, np.int64)), env_steps=0).metrics for _ in range(60)]
    assert told[0]["negative_log_likelihood"] == pytest.approx(math.log(2), abs=0.02)
    assert told[-1]["negative_log_likelihood"] < 0.1


def test_marwil_prefers_what_went_better_and_remembers_the_scale() -> None:
    made = agent("marwil", learning_rate=0.05)
    assert [field[0] for field in made.tables(row_spec(OBSERVATION, (CHOICE,)))["replay"].rows][-1] == "return"
    learning = made.learning(seed=0)
    batch = recorded(action=np.array([0, 0, 0, 1]), **{"return": np.array([0.0, 0.0, 0.0, 4.0], np.float32)})
    first = learning.learn(batch, env_steps=0).metrics
    assert first["advantage_scale"] == pytest.approx(2.0)  # root of the mean of squared returns
    for _ in range(100):
        learning.learn(batch, env_steps=0)
    again = made.learning(seed=1)
    again.restore(learning.state())
    assert again.state()["squared_advantage"] == learning.state()["squared_advantage"]
    tensors = learning.tensors(env_steps=0)
    hidden = np.tanh(np.ones(3) @ tensors["torso.0.weight"] + tensors["torso.0.bias"])
    logits = hidden @ tensors["policy.weight"] + tensors["policy.bias"]
    assert logits[1] - logits[0] > 0.0  # by counts alone it would be log(1/3)


def test_cql_is_on_double_q_learning_or_on_sac() -> None:
    discrete, box = agent("cql", conservative_weight=2.0).loss, agent("cql", TORQUE, conservative_samples=3).loss
    assert isinstance(discrete, DoubleQLoss)
    assert discrete.conservative == 2.0
    assert isinstance(box, ConservativeSoftLoss)
    assert (box.samples, box.soft.target_entropy) == (3, -2.0)


@pytest.mark.parametrize(("online", "action"), [("sac", TORQUE), ("dqn", CHOICE)], ids=["sac", "dqn"])
def test_what_cql_learned_is_where_an_online_algorithm_starts(online: str, action: Leaf) -> None:
    learned = agent("cql", action).learning(seed=0)
    started = agent(online, action).learning(seed=1)
    started.restore(learned.state())
    ours, theirs = learned.tensors(env_steps=0), started.tensors(env_steps=0)
    assert all(np.array_equal(ours[name], theirs[name]) for name in ours)


def test_a_learner_without_evaluator_says_so() -> None:
    nothing: Any = None
    side = LearnerProcess(
        agent=nothing, weights=nothing, counters=nothing, waits=nothing, clock=nothing, edge=nothing, tables={}, version=0
    )
    with pytest.raises(ConfigError, match="this learner was given no evaluator, so its flow cannot evaluate"):
        side.evaluate(episodes=1)
