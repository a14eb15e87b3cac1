"""DDPPO: what an actor holds, alone; and the learner that takes up weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rollstream.algorithms import make_agent, make_flow
from rollstream.errors import ConfigError, NonFiniteError, SchemaMismatch
from rollstream.flow import ActorFragment, Description
from rollstream.flow.steps import train_with_peers
from rollstream.flow.toy import ToyActor
from rollstream.graph import build_update
from rollstream.spaces import Batch, Leaf

OBSERVATION = (Leaf(name="observation", kind="box", dtype="<f4", shape=(1,)),)
ACTIONS = (Leaf(name="action", kind="discrete", dtype="<i8", shape=(), counts=(2,), starts=(0,)),)


def agent_of(**settings: Any) -> Any:
    return make_agent("ddppo", {"hidden": [4], "rollout_steps": 8, **settings}, observation=OBSERVATION, actions=ACTIONS)


def rows(count: int) -> dict[str, Any]:
    generator = np.random.default_rng(0)
    return {
        "observation": generator.standard_normal((count, 1)).astype(np.float32),
        "action": generator.integers(0, 2, count),
        "log_prob": np.full(count, -0.7, np.float32),
        "advantage": generator.standard_normal(count).astype(np.float32),
        "return": generator.standard_normal(count).astype(np.float32),
    }


def batch(columns: dict[str, Any], **metrics: float) -> Batch:
    return Batch(columns=columns, env_steps=12, version=3, newest_version=3, metrics=metrics)


def test_alone_it_is_ppo_with_local_updates() -> None:
    agent = agent_of()
    weights = agent.learning(seed=1).tensors(env_steps=0)
    side = ToyActor(agent=agent, weights=weights)
    message = train_with_peers(epochs=1, minibatches=1, peers=1).bind(side)(batch(rows(12)))
    whole = build_update(agent.loss, batch_rows=12, mode="numpy", max_grad_norm=0.5, seed=0)
    whole.load_parameters(whole.layout.join(weights))
    whole.update(rows(12), learning_rate=1e-3, clip_ratio=0.2, value_coefficient=0.5, entropy_coefficient=0.0)
    np.testing.assert_allclose(message.columns["parameters"][0], whole.parameters(), atol=1e-6)
    assert message.metrics["peer_updates"] == 1.0
    assert message.metrics["peers"] == 1.0
    assert side.acted_version == 4  # what it acts with now is one round newer than what acted


def test_an_actor_acts_with_its_own_weights_and_pulls_only_the_first() -> None:
    agent = agent_of()
    flow = Description(make_flow("ddppo", agent, actors=1))
    side = ToyActor(agent=agent, weights=agent.learning(seed=1).tensors(env_steps=0))
    fragment = ActorFragment(flow, side)
    first, second = fragment.run_once("gather_async"), fragment.run_once("gather_async")
    assert first is not None
    assert second is not None
    assert (first.version, second.version) == (1, 2)
    assert first.metrics["peer_updates"] == 16.0
    fragment.close()


def test_packed_state_continues_bit_for_bit() -> None:
    one, other = agent_of().training(), agent_of().training()
    one.start(agent_of().learning(seed=1).tensors(env_steps=0))
    one.apply(one.gradient(rows(6)).vector, env_steps=0)
    other.unpack(one.pack())
    for training in (one, other):
        training.apply(training.gradient(rows(9)).vector, env_steps=0)
    assert other.updates == 2
    assert np.array_equal(one.parameters(), other.parameters())


def test_the_learner_takes_up_the_weights_of_rank_0_and_counts_their_updates() -> None:
    learning = agent_of().learning(seed=1)
    vector = np.arange(learning.update.layout.size, dtype=np.float32)
    learned = learning.learn(batch({"parameters": vector[None]}, peer_updates=16.0), env_steps=0)
    assert learned.updates == 16
    assert np.array_equal(learning.update.parameters(), vector)
    assert learning.learn(batch({"parameters": vector[None][:0]}), env_steps=0).updates == 0
    with pytest.raises(NonFiniteError, match="are not finite; weights refused"):
        learning.learn(batch({"parameters": vector[None] * np.nan}), env_steps=0)
    with pytest.raises(
        SchemaMismatch, match=r"ddppo learns from the column 'parameters', the batch has: none; put train_with_peers"
    ):
        learning.learn(batch({}), env_steps=0)


def test_what_cannot_work_is_refused() -> None:
    with pytest.raises(ConfigError, match="ddppo cannot normalize observations by running statistics"):
        agent_of(normalize_observations=True)
    with pytest.raises(ConfigError, match="minibatches of train_with_peers must be >= 1, got 0"):
        train_with_peers(epochs=1, minibatches=0, peers=1)
