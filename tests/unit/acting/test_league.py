"""Self-play in an actor: who plays whom is drawn for each episode, and stays so until it ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rollstream.acting.league import League, snapshots_in
from rollstream.algorithms import make_agent
from rollstream.envs.multi_agent import ParallelEnvironments
from rollstream.envs.multi_agent.toy import Pursuit
from rollstream.seeding import child_generator

ENVS = 64
ACTIONS = 5


@dataclass(frozen=True)
class Published:
    version: int
    tensors: dict[str, Any]


def tensors_for(league: dict[int, int], *, own: int, template: dict[str, Any]) -> dict[str, Any]:
    """Weights by which the learning policy always does `own`, and each snapshot (by number) what `league` says."""
    found = {}
    for prefix, action in [("main/", own), *((f"main/{number}/", action) for number, action in league.items())]:
        for name, tensor in template.items():
            found[f"{prefix}{name}"] = np.zeros_like(tensor)
        found[f"{prefix}policy.bias"] = np.eye(ACTIONS, dtype=np.float32)[action] * 90
    return found


def made(*, latest_share: float, seed: int = 0) -> tuple[League, Any, dict[str, Any]]:
    environment = ParallelEnvironments(Pursuit, name="pursuit", seeds=range(ENVS))
    agent: Any = make_agent(
        "self-play",
        {"hidden": [2], "latest_share": latest_share},
        observation=environment.observation_leaves,
        actions=environment.action_leaves,
    )
    template = {
        name.removeprefix("main/"): tensor
        for name, tensor in agent.learning(seed=0).tensors(env_steps=0).items()
        if name.count("/") == 1
    }
    return agent.make_policy(envs=ENVS, generator=child_generator(seed, "act")), environment.reset(), template


def everywhere(value: bool) -> Any:
    return np.full(ENVS, value)


def test_without_snapshots_every_episode_is_a_mirror_match_that_counts_nowhere() -> None:
    league, seen, template = made(latest_share=0.0)
    league.load(Published(1, tensors_for({}, own=1, template=template)))
    league.begin(first=everywhere(True), over=everywhere(False))
    answer = league.act(seen)
    assert answer["action.hunter"].tolist() == answer["action.runner"].tolist() == [1] * ENVS
    assert answer["learns.hunter"].tolist() == answer["learns.runner"].tolist() == [2] * ENVS


def test_against_a_snapshot_one_agent_learns_and_the_other_is_played_by_it() -> None:
    league, seen, template = made(latest_share=0.0)
    league.load(Published(1, tensors_for({3: 2, 5: 4}, own=1, template=template)))
    league.begin(first=everywhere(True), over=everywhere(False))
    answer = league.act(seen)
    hunts = answer["learns.hunter"] == 1
    assert 0 < hunts.sum() < ENVS
    assert (answer["learns.runner"] == 1 - answer["learns.hunter"]).all()
    by_snapshot = np.where(league.opponents == 3, 2, 4)
    assert set(league.opponents.tolist()) == {3, 5}
    assert (answer["action.hunter"] == np.where(hunts, 1, by_snapshot)).all()
    assert (answer["action.runner"] == np.where(hunts, by_snapshot, 1)).all()
    assert (league.extras(seen)["learns.hunter"] == answer["learns.hunter"]).all()
    assert (league.greedy(seen)["action.runner"] == 1).all()


def test_an_opponent_stays_until_the_episode_ends_even_when_it_has_left_the_league() -> None:
    league, seen, template = made(latest_share=0.0)
    league.load(Published(1, tensors_for({3: 2}, own=1, template=template)))
    league.begin(first=everywhere(True), over=everywhere(False))
    league.act(seen)
    league.load(Published(2, tensors_for({4: 0}, own=3, template=template)))
    league.begin(first=everywhere(False), over=everywhere(False))
    answer = league.act(seen)
    assert set(league.opponents.tolist()) == {3}
    assert set(np.where(league.seats == 0, answer["action.runner"], answer["action.hunter"]).tolist()) == {2}
    league.begin(first=everywhere(True), over=everywhere(False))
    answer = league.act(seen)
    assert set(np.where(league.seats == 0, answer["action.runner"], answer["action.hunter"]).tolist()) == {0}


def test_draws_follow_from_the_seed_and_mirror_matches_have_their_share() -> None:
    drawn = []
    for seed in (7, 7, 8):
        league, _, template = made(latest_share=0.5, seed=seed)
        league.load(Published(1, tensors_for({3: 2, 4: 0}, own=1, template=template)))
        league.begin(first=everywhere(True), over=everywhere(False))
        drawn.append((*league.opponents.tolist(), *league.seats.tolist()))
        assert 15 <= (league.opponents == -1).sum() <= 49
    assert drawn[0] == drawn[1] != drawn[2]


def test_snapshots_are_read_from_the_weights_by_number() -> None:
    one = np.ones(1)
    assert snapshots_in({"w": one, "2/w": one, "10/torso.w": one}) == {2: {"w": one}, 10: {"torso.w": one}}
