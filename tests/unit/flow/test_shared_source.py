"""One source, several edges that select from it: each rollout goes to all, and its environment steps are counted once."""

from __future__ import annotations

from typing import Any

import pytest

from rollstream.acting import ActorProcess
from rollstream.algorithms import make_agent
from rollstream.clock import FakeClock
from rollstream.config import EnvironmentSpec
from rollstream.envs import Collector, make_environment
from rollstream.errors import ConfigError
from rollstream.flow import ActorFragment, Actors, Description, InlineEdges, union
from rollstream.flow.steps import advantages, select_policies
from rollstream.seeding import child_generator
from rollstream.spaces import row_spec

TOYS = "rollstream.envs.multi_agent.toy"
ENVS, STEPS = 2, 4


def branch(sampled: Any, policy: str) -> Any:
    return sampled.for_each(select_policies(policy)).for_each(advantages(discount=0.9, gae_lambda=0.9))


def fragment() -> ActorFragment:
    environment = make_environment(EnvironmentSpec(id=f"{TOYS}:Visitors"), envs=ENVS, seed=0, allow=[TOYS])
    leaves = {"observation": environment.observation_leaves, "actions": environment.action_leaves}
    policies = {"host": {"agents": ["host"]}, "guests": {}}
    agent: Any = make_agent("multi-ppo", {"policies": policies, "hidden": [4]}, **leaves)
    policy = agent.make_policy(envs=ENVS, generator=child_generator(0, "act"))
    rows = row_spec(environment.observation_leaves, environment.action_leaves, extra=agent.extra_columns)

    class Weights:
        version = 1
        tensors = agent.learning(seed=0).tensors(env_steps=0)

        def fetch_if_newer(self, than: int) -> Any:
            return self if than < 1 else None

    side = ActorProcess(
        actor="actor-0",
        clock=FakeClock(),
        source=Collector(environment, row_spec=rows, policy=policy, clock=FakeClock()),
        policy=policy,
        weights=Weights(),
        sink=lambda table, rule, environments: pytest.fail("no table"),
        agent=agent,
    )
    sampled = Actors().rollouts(steps=STEPS)
    flow = union(branch(sampled, "host").gather_sync(name="host"), branch(sampled, "guests").gather_async(name="guests")).report(
        every_s=1.0
    )
    return ActorFragment(Description(flow), side)


def test_the_first_edge_accounts_for_the_steps_and_each_has_its_own_rows() -> None:
    found = fragment()
    for _ in range(3):
        host, guests = found.run_once("host"), found.run_once("guests")
        assert host is not None and guests is not None
        assert (host.env_steps, guests.env_steps) == (ENVS * STEPS, 0)
        assert host.rows == ENVS * STEPS
        assert host.metrics["agent_steps.host"] == host.rows
        assert guests.metrics["agent_steps.guests"] == guests.rows
        assert (host.columns["observation"][:, 0] == 0).all()
        assert (guests.columns["observation"][:, 0] != 0).all()


def test_an_edge_waits_until_the_others_have_taken_their_part() -> None:
    found = fragment()
    assert found.ready("host") and found.ready("guests")
    found.run_once("guests")
    assert found.ready("host") and not found.ready("guests")
    found.run_once("host")
    assert found.ready("guests")


def test_in_one_thread_a_barrier_is_ready_when_a_whole_round_is() -> None:
    fragments = [fragment(), fragment()]
    edges = InlineEdges(fragments)
    barrier, other = edges.source("host", in_flight=1), edges.source("guests", in_flight=2)
    fragments[0].run_once("guests")
    fragments[0].run_once("host")
    fragments[1].run_once("host")
    assert not barrier.ready() and other.ready()


def test_parts_of_a_rollout_may_not_go_two_ways() -> None:
    sampled = Actors().rollouts(steps=STEPS)
    twice = union(branch(sampled, "host").gather_sync(name="a"), branch(sampled, "host").gather_sync(name="b"))
    with pytest.raises(ConfigError, match="is used 2 times"):
        Description(twice)
