"""A3C: what actor and learner do apart is what one update does; other settings are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rollstream.algorithms import make_agent, make_flow
from rollstream.errors import ConfigError
from rollstream.flow import Description
from rollstream.graph import build_update
from rollstream.graph.optimizers import RmsProp
from rollstream.spaces import Batch, Leaf

OBSERVATION = (Leaf(name="observation", kind="box", dtype="<f4", shape=(3,)),)
ACTIONS = (Leaf(name="action", kind="discrete", dtype="<i8", shape=(), counts=(2,), starts=(0,)),)


def agent_of(**settings: Any) -> Any:
    return make_agent("a3c", {"hidden": [4], **settings}, observation=OBSERVATION, actions=ACTIONS)


def rows(count: int, *, seed: int = 0) -> dict[str, Any]:
    generator = np.random.default_rng(seed)
    return {
        "observation": generator.standard_normal((count, 3)).astype(np.float32),
        "action": generator.integers(0, 2, count),
        "advantage": generator.standard_normal(count).astype(np.float32),
        "return": generator.standard_normal(count).astype(np.float32),
    }


def message(*gradients: np.ndarray) -> Batch:
    return Batch(columns={"gradient": np.stack(gradients)}, env_steps=1, version=1, newest_version=1)


def test_a_gradient_of_an_actor_moves_the_learner_as_a_whole_update_would() -> None:
    agent = agent_of()
    learning = agent.learning(seed=7)
    whole = build_update(
        agent.loss,
        batch_rows=5,
        optimizer=RmsProp(decay=0.99, epsilon=1e-5),
        max_grad_norm=0.5,
        mode="numpy",
        parameters=learning.update.parameters(),
    )
    source = agent.gradients()
    for seed in range(3):
        found = source.gradient(rows(5, seed=seed), learning.tensors(env_steps=0))
        learned = learning.learn(message(found.vector), env_steps=0)
        whole.update(rows(5, seed=seed), learning_rate=3e-3, value_coefficient=0.5, entropy_coefficient=0.01)
        assert learned.updates == 1
        np.testing.assert_allclose(learning.update.parameters(), whole.parameters(), atol=1e-6)


def test_rounds_of_any_number_of_rows_have_a_gradient() -> None:
    agent = agent_of()
    tensors = agent.learning(seed=1).tensors(env_steps=0)
    one = agent.gradients()
    for count in (5, 3, 8):
        found = one.gradient(rows(count), tensors)
        np.testing.assert_allclose(found.vector, agent.gradients().gradient(rows(count), tensors).vector, atol=1e-6)
        assert found.rows == count


def test_each_gradient_is_a_step_and_what_is_not_finite_is_skipped() -> None:
    learning = agent_of().learning(seed=1)
    size = learning.update.layout.size
    good, bad = np.ones(size, np.float32), np.full(size, np.inf, np.float32)
    learned = learning.learn(message(good, bad, good), env_steps=0)
    assert learned.updates == 2
    assert learned.metrics["skipped_updates"] == 1.0
    assert np.isfinite(learning.update.parameters()).all()


def test_statistics_of_observations_are_refused() -> None:
    with pytest.raises(ConfigError, match="a3c cannot normalize observations by running statistics"):
        agent_of(normalize_observations=True)


def test_the_flow_keeps_one_gradient_of_each_actor_under_way() -> None:
    (edge,) = Description(make_flow("a3c", agent_of(), actors=4)).edges
    assert (edge.in_flight, edge.barrier) == (1, False)
    assert [node.name for node in edge.chain] == ["rollouts", "advantages", "compute_gradients"]
