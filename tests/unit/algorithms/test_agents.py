"""What agents refuse: environments with another number of actions, and data that their algorithm cannot learn from."""

from __future__ import annotations

from typing import Any

import pytest

from rollstream.algorithms import make_agent
from rollstream.errors import ConfigError, SpaceError
from rollstream.spaces import Leaf

OBSERVATION = (Leaf(name="observation", kind="box", dtype="<f4", shape=(4,)),)
ACTION = Leaf(name="action", kind="discrete", dtype="<i8", shape=(), counts=(2,), starts=(0,))


def two_actions() -> tuple[Leaf, ...]:
    return tuple(
        Leaf(name=f"action.{side}", kind="discrete", dtype="<i8", shape=(), counts=(2,), starts=(0,))
        for side in ("left", "right")
    )


def test_two_actions_are_refused_with_their_names_where_one_is_chosen() -> None:
    message = r"action: QPolicy chooses one discrete action, but the environment asks for 2 \(action.left, action.right\)"
    with pytest.raises(SpaceError, match=message):
        make_agent("dqn", {}, observation=OBSERVATION, actions=two_actions())


def test_ppo_takes_no_samples_of_a_table() -> None:
    sample: Any = None
    agent = make_agent("ppo", {}, observation=OBSERVATION, actions=(ACTION,))
    with pytest.raises(ConfigError, match="ppo learns from rollouts, not from replay tables; use an algorithm such as dqn"):
        agent.learning(seed=0).columns(sample, env_steps=0)


@pytest.mark.parametrize("algorithm", ["ppo", "dqn"])
@pytest.mark.parametrize(
    ("widths", "message"),
    [
        ([64, -1], r"hidden.1: Input should be greater than or equal to 1, got -1"),
        ([1_000_000_000], r"hidden.0: Input should be less than or equal to 16384, got 1000000000"),
        (64, "hidden: Input should be a list, got 64"),
    ],
)
def test_a_width_that_no_layer_can_have_is_refused_before_anything_is_made(algorithm: str, widths: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make_agent(algorithm, {"hidden": widths}, observation=OBSERVATION, actions=(ACTION,))


def test_more_atoms_than_memory_are_refused_before_anything_is_made() -> None:
    with pytest.raises(ConfigError, match="distribution_atoms: Input should be less than or equal to 1000, got 1000000000"):
        make_agent("dqn", {"distribution_atoms": 1_000_000_000}, observation=OBSERVATION, actions=(ACTION,))


def test_a_bad_setting_is_named_by_its_path() -> None:
    with pytest.raises(ConfigError, match="settings.epochs: Input should be greater than or equal to 1, got 0"):
        make_agent("ppo", {"epochs": 0}, observation=OBSERVATION, actions=(ACTION,))
