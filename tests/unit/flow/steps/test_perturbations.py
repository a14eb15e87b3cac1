"""Whole episodes with weights to both sides of the newest ones; the noise is told by its place in a table that both sides make."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rollstream.errors import ConfigError
from rollstream.flow import ActorFragment, Actors, Description
from rollstream.flow.steps import perturbations
from rollstream.flow.steps.noise_table import NoiseTable
from rollstream.flow.toy import ToyActor
from rollstream.graph import ActorCriticPolicy
from rollstream.graph.declare import declare
from rollstream.graph.policies.greedy_policy import GreedyPolicy
from rollstream.spaces import Leaf

OBSERVATION = (Leaf(name="observation", kind="box", dtype="<f4", shape=(1,)),)
ACTIONS = (Leaf(name="action", kind="discrete", dtype="<i8", shape=(), counts=(2,), starts=(0,)),)


class Agent:
    def __init__(self) -> None:
        self.policy = GreedyPolicy(ActorCriticPolicy(OBSERVATION, ACTIONS, hidden=(), value=False))
        self.noise = NoiseTable(seed=5, numbers=1_000)


class Recording(ToyActor):
    """Remembers the weights of each episode."""

    acted: list[np.ndarray]

    def act_with(self, tensors: Any, *, version: int | None = None) -> None:
        super().act_with(tensors, version=version)
        self.acted = [*getattr(self, "acted", []), declare(self.agent.policy).layout.join(tensors)]


def actor(**settings: Any) -> Recording:
    agent = Agent()
    layout = declare(agent.policy).layout
    return Recording(agent=agent, weights=layout.split(np.full(layout.size, 2.0, np.float32)), **settings)


def test_pairs_are_antithetic_and_only_places_and_returns_travel() -> None:
    side = actor(episode_steps=3)
    flow = Description(Actors().generate(perturbations(pairs=2, deviation=0.5, steps=4, episode_steps=10)).gather_sync())
    message = ActorFragment(flow, side).run_once("gather_sync")
    assert message is not None
    assert set(message.columns) == {"noise_place", "returns"}
    assert message.columns["returns"].tolist() == [[3.0, 3.0], [3.0, 3.0]]
    size = declare(side.agent.policy).layout.size
    for pair, place in enumerate(message.columns["noise_place"]):
        noise = NoiseTable(seed=5, numbers=1_000).at(int(place), size=size)  # as the learner makes it
        np.testing.assert_allclose(side.acted[2 * pair], 2.0 + 0.5 * noise, rtol=1e-6)
        np.testing.assert_allclose(side.acted[2 * pair + 1], 2.0 - 0.5 * noise, rtol=1e-6)
    assert message.env_steps == 4 * 4 * 2  # four evaluations of four vector steps in two copies: what was played counts
    assert message.episodes.returns.tolist() == [3.0] * 8


def test_only_the_first_episode_of_a_copy_counts() -> None:
    step = perturbations(pairs=1, deviation=0.5, steps=7, episode_steps=100)
    batch = step.bind(actor(episode_steps=3))(None)
    assert batch.columns["returns"].tolist() == [[3.0, 3.0]]
    assert batch.episodes.lengths.tolist() == [3, 3, 3, 3]


def test_an_episode_without_end_is_cut_and_counts_for_what_it_has_got() -> None:
    step = perturbations(pairs=1, deviation=0.5, steps=4, episode_steps=10)
    batch = step.bind(actor(episode_steps=1_000))(None)
    assert batch.columns["returns"].tolist() == [[10.0, 10.0]]
    assert batch.env_steps == 2 * 10 * 2
    assert len(batch.episodes) == 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"pairs": 0}, "pairs of perturbations must be >= 1, got 0"),
        ({"deviation": 0.0}, "deviation of perturbations must be > 0, got 0.0"),
        ({"episode_steps": 0}, "episode_steps of perturbations must be >= 1, got 0"),
    ],
)
def test_settings_that_search_nothing_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        perturbations(**{"pairs": 1, "deviation": 0.1, "steps": 1, "episode_steps": 1, **settings})


def test_a_noise_table_is_the_same_wherever_it_is_made() -> None:
    one, other = NoiseTable(seed=1, numbers=100), NoiseTable(seed=1, numbers=100)
    assert np.array_equal(one.at(7, size=5), other.at(7, size=5))
    assert not np.array_equal(one.at(7, size=5), NoiseTable(seed=2, numbers=100).at(7, size=5))
    places = {one.draw(np.random.default_rng(seed), size=98) for seed in range(40)}
    assert places == {0, 1, 2}
    with pytest.raises(ConfigError, match="noise_numbers is 100, but the policy has 101 parameters"):
        one.draw(np.random.default_rng(0), size=101)
    with pytest.raises(ConfigError, match="there is no noise of 5 numbers at place 96 of a table of 100"):
        one.at(96, size=5)
