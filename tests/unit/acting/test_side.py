"""The actor's side: weights that are pulled, weights that are given, and random numbers of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rollstream.acting import ActorProcess, Policy
from rollstream.algorithms.evaluation import LocalWeights
from rollstream.clock import FakeClock
from rollstream.config import EnvironmentSpec
from rollstream.envs import Collector, make_environment
from rollstream.errors import ConfigError, NonFiniteError
from rollstream.graph import ActorCriticPolicy, build_acting
from rollstream.graph.declare import declare
from rollstream.seeding import child_generator
from rollstream.spaces import Flag, row_spec


class Board:
    newest: LocalWeights | None = None

    def fetch_if_newer(self, than: int) -> LocalWeights | None:
        return self.newest if self.newest is not None and self.newest.version > than else None


class Actor:
    def __init__(self, *, seed: int = 3, agent: Any = None, **environment: Any) -> None:
        spec = EnvironmentSpec(id="CartPole-v1", **environment)
        self.environment = make_environment(spec, envs=2, seed=1, allow=())
        component = ActorCriticPolicy(self.environment.observation_leaves, self.environment.action_leaves, hidden=(4,))
        self.layout = declare(component).layout
        self.board = Board()
        policy = Policy(
            acting=build_acting(component, batch=2),
            actions=self.environment.action_leaves,
            extra=component.extra_columns,
            generator=child_generator(1, "exploration"),
        )
        rows = row_spec(self.environment.observation_leaves, self.environment.action_leaves, extra=component.extra_columns)
        self.side = ActorProcess(
            actor="actor-0",
            clock=FakeClock(),
            source=Collector(self.environment, row_spec=rows, policy=policy, clock=FakeClock()),
            policy=policy,
            weights=self.board,
            sink=lambda table, rule, environments: pytest.fail("no table"),
            agent=agent,
            seed=seed,
        )

    def publish(self, version: int, value: float) -> None:
        flat = np.full(self.layout.size, value, np.float32)
        self.board.newest = LocalWeights(version=version, tensors=self.layout.split(flat))

    def first_weight(self) -> float:
        return float(self.layout.join(self.side.tensors())[0])


def test_weights_that_are_given_act_until_the_next_pull() -> None:
    actor = Actor()
    assert actor.side.pull() == 0
    actor.publish(4, 1.0)
    assert actor.side.pull() == 4
    actor.side.act_with(actor.layout.split(np.full(actor.layout.size, 2.0, np.float32)))
    assert actor.first_weight() == 2.0
    assert actor.side.collect(steps=2, pull=False).version == 4
    assert actor.first_weight() == 2.0
    actor.side.collect(steps=2)
    assert actor.first_weight() == 1.0  # nothing newer was published: the pulled ones act again


def test_given_weights_may_tell_a_version_of_their_own() -> None:
    actor = Actor()
    actor.publish(4, 1.0)
    actor.side.pull()
    actor.side.act_with(actor.layout.split(np.zeros(actor.layout.size, np.float32)), version=9)
    assert set(actor.side.collect(steps=2, pull=False).rows["version"]) == {9}
    assert actor.side.pull() == 4


def test_given_weights_that_are_not_finite_are_refused_and_what_acted_stays() -> None:
    actor = Actor()
    actor.publish(1, 0.5)
    actor.side.pull()
    with pytest.raises(NonFiniteError, match="are not finite; weights refused"):
        actor.side.act_with(actor.layout.split(np.full(actor.layout.size, np.inf, np.float32)))
    assert actor.first_weight() == 0.5


@pytest.mark.parametrize("environment", [{}, {"vectorization": "sync", "autoreset": "same_step"}])
def test_a_restart_begins_new_episodes_that_are_other_ones(environment: dict[str, Any]) -> None:
    actor = Actor(**environment)
    actor.publish(1, 0.0)
    first = actor.side.collect(steps=3)
    actor.side.restart()
    again = actor.side.collect(steps=3)
    begins = again.rows[again.offsets[:-1]]
    assert ((begins["flags"] & Flag.FIRST) != 0).all()
    assert not np.array_equal(begins["observation"], first.rows[first.offsets[:-1]]["observation"])


def test_generators_depend_on_the_actors_seed_and_their_name() -> None:
    one, same, other = Actor(seed=3).side, Actor(seed=3).side, Actor(seed=4).side
    drawn = one.generator("noise").random(3).tolist()
    assert drawn == same.generator("noise").random(3).tolist()
    assert drawn != other.generator("noise").random(3).tolist()
    assert drawn != one.generator("other").random(3).tolist()
    assert one.generator("noise") is one.generator("noise")


def test_a_side_without_an_agent_says_what_is_missing() -> None:
    with pytest.raises(ConfigError, match=r"this actor was given no agent.*pass ActorProcess\(agent=...\)"):
        _ = Actor().side.agent
    assert Actor(agent="ppo").side.agent == "ppo"
