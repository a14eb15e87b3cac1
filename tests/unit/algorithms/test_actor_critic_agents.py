"""What SAC, TD3 and DDPG minimize and hand on: target entropies, delayed actors, noise, targets that follow, and what is saved."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from rollstream.algorithms.ddpg.agent import DdpgAgent
from rollstream.algorithms.ddpg.config import DdpgConfig
from rollstream.algorithms.sac.agent import SacAgent
from rollstream.algorithms.sac.config import SacConfig
from rollstream.algorithms.td3.agent import Td3Agent
from rollstream.algorithms.td3.config import Td3Config
from rollstream.spaces import Batch, Leaf

OBSERVATION = (Leaf(name="observation", kind="box", dtype="<f4", shape=(3,)),)
TORQUE = Leaf(name="action", kind="box", dtype="<f4", shape=(2,), low=(-2.0, 0.0), high=(2.0, 6.0))
CHOICE = Leaf(name="action", kind="discrete", dtype="<i8", shape=(), counts=(4,), starts=(0,))


def batch(action: Leaf, *, items: int = 8) -> Batch:
    generator = np.random.default_rng(0)
    taken: Any = generator.integers(0, 4, items) if action.counts else generator.uniform(0.0, 2.0, (items, 2)).astype(np.float32)
    columns = {
        "observation": generator.standard_normal((items, 3)).astype(np.float32),
        "next_observation": generator.standard_normal((items, 3)).astype(np.float32),
        "action": taken,
        "reward": generator.standard_normal(items).astype(np.float32),
        "discount": np.full(items, 0.9, np.float32),
    }
    return Batch(columns=columns, env_steps=0, version=1, newest_version=1)


def sac(action: Leaf, **settings: Any) -> SacAgent:
    return SacAgent(SacConfig(batch_items=8, hidden=(8,), mode="numpy", **settings), observation=OBSERVATION, actions=(action,))


def td3(**settings: Any) -> Td3Agent:
    config = Td3Config(batch_items=8, hidden=(8,), mode="numpy", **settings)
    return Td3Agent(config, observation=OBSERVATION, actions=(TORQUE,))


@pytest.mark.parametrize(
    ("action", "settings", "entropy"),
    [
        (TORQUE, {}, -2.0),
        (TORQUE, {"target_entropy": -0.5}, -0.5),
        (CHOICE, {"target_entropy_share": 0.5}, 0.5 * math.log(4)),
        (CHOICE, {"target_entropy": 0.25}, 0.25),
    ],
)
def test_the_target_entropy_follows_from_the_action_space(action: Leaf, settings: Any, entropy: float) -> None:
    loss: Any = sac(action, **settings).loss
    assert loss.target_entropy == pytest.approx(entropy)


@pytest.mark.parametrize("action", [TORQUE, CHOICE], ids=["box", "discrete"])
def test_a_resumed_sac_learns_what_it_would_have_learned(action: Leaf) -> None:
    first = sac(action).learning(seed=0)
    first.learn(batch(action), env_steps=0)
    second = sac(action).learning(seed=1)
    second.restore(first.state())
    for agent in (first, second):
        agent.sync_target()
        agent.learn(batch(action), env_steps=0)
    ours, theirs = first.state(), second.state()
    assert all(np.array_equal(ours["update"][name], theirs["update"][name]) for name in ours["update"])
    assert ours["noise"] == theirs["noise"]


def test_the_temperature_falls_while_the_entropy_is_above_its_target() -> None:
    agent = sac(CHOICE, target_entropy=0.0, learning_rate=0.01).learning(seed=0)
    for _ in range(5):
        agent.learn(batch(CHOICE), env_steps=0)
    assert agent.tensors(env_steps=0)["log_alpha"][0] == pytest.approx(-0.05, abs=0.005)  # Adam: one rate an update


def test_the_target_moves_by_its_share() -> None:
    agent: Any = sac(TORQUE, target_share=0.25).learning(seed=0)
    before = agent.state()["update"]
    agent.learn(batch(TORQUE), env_steps=0)
    agent.sync_target()
    after = agent.state()["update"]
    expected = before["target"] + 0.25 * (after["parameters"] - before["target"])
    np.testing.assert_allclose(after["target"], expected, rtol=1e-6)


def test_the_actor_of_td3_moves_in_every_second_update() -> None:
    agent = td3().learning(seed=0)
    moved = []
    for _ in range(2):
        before = agent.tensors(env_steps=0)["torso.0.weight"]
        agent.learn(batch(TORQUE), env_steps=0)
        moved.append(not np.array_equal(before, agent.tensors(env_steps=0)["torso.0.weight"]))
    assert moved == [False, True]


def test_ddpg_is_td3_without_its_tricks() -> None:
    agent = DdpgAgent(DdpgConfig(batch_items=8, hidden=(8,), mode="numpy"), observation=OBSERVATION, actions=(TORQUE,))
    assert (agent.loss.twin, agent.loss.target_noise) == (False, 0.0)
    learning = agent.learning(seed=0)
    before = learning.tensors(env_steps=0)
    learning.learn(batch(TORQUE), env_steps=0)
    after = learning.tensors(env_steps=0)
    assert not np.array_equal(before["torso.0.weight"], after["torso.0.weight"])
    assert np.array_equal(before["critics.q2.value.weight"], after["critics.q2.value.weight"])


@pytest.mark.parametrize(("env_steps", "scale"), [(0, 1.0), (500, 0.6), (1_000, 0.2), (9_999, 0.2)])
def test_noise_falls_with_environment_steps_and_travels_with_the_weights(env_steps: int, scale: float) -> None:
    agent = td3(exploration_noise_start=1.0, exploration_noise_end=0.2, exploration_decay_steps=1_000).learning(seed=0)
    assert agent.tensors(env_steps=env_steps)["scalar.noise_scale"] == pytest.approx([scale])


def test_noise_that_would_rise_is_refused() -> None:
    with pytest.raises(ValidationError, match=r"exploration_noise_end \(0.5\) must be <= exploration_noise_start \(0.2\)"):
        Td3Config(exploration_noise_start=0.2, exploration_noise_end=0.5)


def test_the_table_begins_with_what_was_recorded() -> None:
    assert sac(TORQUE).recordings == {}
    assert sac(TORQUE, offline="play.npz", n_step=3).recordings["replay"].steps == 3
