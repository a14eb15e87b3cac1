"""Algorithms for several agents: what they build for an environment, what they refuse, and what they remember."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rollstream.algorithms import make_agent, make_flow
from rollstream.algorithms.policies import PolicyAgents
from rollstream.algorithms.trial import try_out
from rollstream.envs.multi_agent import ParallelEnvironments
from rollstream.envs.multi_agent.toy import Meeting, Pursuit, TwoStepGame, Visitors
from rollstream.errors import ConfigError, SpaceError
from rollstream.flow import Description
from rollstream.spaces import Batch, Episodes, Leaf, row_spec

SMALL = {"hidden": [4], "mode": "numpy"}


def made(name: str, game: Any = Meeting, **settings: Any) -> Any:
    environment = ParallelEnvironments(game, name="game", seeds=[0])
    return make_agent(name, settings, observation=environment.observation_leaves, actions=environment.action_leaves)


@pytest.mark.parametrize(
    ("name", "game"),
    [("multi-ppo", Visitors), ("two-trainer", Meeting), ("qmix", TwoStepGame), ("self-play", Pursuit)],
)
def test_every_algorithm_for_several_agents_passes_its_trial(name: str, game: Any) -> None:
    environment = ParallelEnvironments(game, name="game", seeds=[0])
    try_out(name, {}, observation=environment.observation_leaves, actions=environment.action_leaves, actors=2)


@pytest.mark.parametrize("name", ["multi-ppo", "two-trainer", "qmix", "self-play"])
def test_an_environment_for_one_agent_is_refused_with_what_to_use(name: str) -> None:
    seen = (Leaf(name="observation", kind="box", dtype="<f4", shape=(2,)),)
    does = (Leaf(name="action", kind="discrete", dtype="<i8", shape=(), counts=(2,), starts=(0,)),)
    with pytest.raises(SpaceError, match="several agents .a PettingZoo parallel environment.; for one agent use"):
        make_agent(name, {}, observation=seen, actions=does)


def test_two_trainers_take_turns_over_the_agents_unless_told() -> None:
    agent = made("two-trainer", lambda: Meeting(agents=3))
    assert [agent.name for agent in agent.parts["ppo"].agents] == ["agent_0", "agent_2"]
    told = made("two-trainer", policies={"dqn": {"agents": ["*_0"]}, "ppo": {}})
    assert [agent.name for agent in told.parts["dqn"].agents] == ["agent_0"]
    assert told.table_names == ("replay",)
    with pytest.raises(ConfigError, match="policies must be ppo and dqn, got a; multi-ppo takes any number"):
        made("two-trainer", policies={"a": {}})


def test_rows_carry_what_each_policy_adds_for_each_of_its_agents() -> None:
    agent = made("two-trainer")
    assert [column.name for column in agent.extra_columns] == ["log_prob.agent_0", "value.agent_0"]
    assert list(agent.view("ppo").rows.dtype.names) == [
        "flags",
        "version",
        "observation",
        "action",
        "reward",
        "log_prob",
        "value",
    ]
    assert agent.tables(row_spec((), ()))["replay"].rows == agent.view("dqn").rows.fields


def test_agents_of_one_policy_must_have_equal_spaces() -> None:
    class Uneven(Meeting):
        """The second agent has one more action."""

        def action_space(self, agent: str) -> Any:
            from gymnasium import spaces

            return spaces.Discrete(3 + int(agent == "agent_1"))

    with pytest.raises(SpaceError, match="policy 'shared' plays agent_0 and agent_1, whose spaces differ"):
        made("multi-ppo", Uneven)
    made("multi-ppo", Uneven, policies={"a": {"agents": ["agent_0"]}, "b": {}})


def test_what_belongs_to_one_policy_is_not_asked_of_all() -> None:
    agent = made("multi-ppo")
    assert isinstance(agent, PolicyAgents)
    with pytest.raises(ConfigError, match="there is no policy 'x'; settings.policies has: shared"):
        agent.view("x")
    with pytest.raises(ConfigError, match="each policy acts for itself, there are several: shared"):
        _ = agent.policy
    with pytest.raises(ConfigError, match="each policy has a loss of its own"):
        _ = agent.loss


def test_the_flow_of_two_trainers_has_one_source_and_two_edges() -> None:
    agent = made("two-trainer")
    description = Description(make_flow("two-trainer", agent, actors=2), tables=agent.table_names)
    assert [edge.name for edge in description.edges] == ["ppo", "dqn"]
    assert len({edge.chain[0].name for edge in description.edges}) == 1


def test_settings_that_contradict_are_refused() -> None:
    with pytest.raises(ConfigError, match="one of snapshot_every_updates and snapshot_win_rate must be set"):
        made("self-play", snapshot_win_rate=None)
    with pytest.raises(ConfigError, match=r"epsilon_end \(0.5\) must be <= epsilon_start \(0.1\)"):
        made("qmix", TwoStepGame, epsilon_start=0.1, epsilon_end=0.5)


def rows(count: int, *, returns: list[float]) -> Batch:
    generator = np.random.default_rng(0)
    columns: dict[str, Any] = {
        "observation": generator.normal(size=(count, 6)).astype(np.float32),
        "action": generator.integers(0, 5, count),
        "log_prob": np.full(count, -1.6, np.float32),
        "advantage": generator.normal(size=count).astype(np.float32),
        "return": generator.normal(size=count).astype(np.float32),
    }
    episodes = Episodes(returns=np.asarray(returns, np.float64), lengths=np.ones(len(returns), np.int64))
    return Batch(columns=columns, env_steps=count, version=1, newest_version=1, episodes=episodes)


def learner(**settings: Any) -> Any:
    agent = made("self-play", Pursuit, batch_rows=8, epochs=2, **SMALL, **settings)
    return agent.learning(seed=3)


def snapshots(learning: Any) -> list[int]:
    return sorted({int(name.split("/")[1]) for name in learning.tensors(env_steps=0) if name.count("/") == 2})


def test_a_snapshot_joins_the_league_when_the_win_rate_is_high_enough() -> None:
    learning = learner(snapshot_win_rate=0.7)
    main = learning.learners["main"]
    assert snapshots(learning) == [0]
    main.learn(rows(8, returns=[1.0] * 99), env_steps=0)
    assert snapshots(learning) == [0]  # too few episodes to judge by
    told = main.learn(rows(8, returns=[-1.0]), env_steps=0)
    assert snapshots(learning) == [0, 1]
    assert told.metrics["win_rate"] == 0.99
    newest = {name.split("/")[2]: tensor for name, tensor in learning.tensors(env_steps=0).items() if name.startswith("main/1/")}
    for name, tensor in newest.items():
        assert (tensor == learning.tensors(env_steps=0)[f"main/{name}"]).all()
    main.learn(rows(8, returns=[-1.0] * 60 + [1.0] * 40), env_steps=0)
    assert snapshots(learning) == [0, 1]


def test_the_league_is_bounded_and_the_oldest_leave() -> None:
    learning = learner(snapshot_every_updates=2, snapshot_win_rate=None, league_size=3)
    for _ in range(5):
        learning.learners["main"].learn(rows(8, returns=[]), env_steps=0)
    assert snapshots(learning) == [3, 4, 5]


def test_the_league_survives_a_restart() -> None:
    first, second = (learner(snapshot_every_updates=6, snapshot_win_rate=0.9) for _ in range(2))
    for _ in range(4):
        first.learners["main"].learn(rows(8, returns=[1.0, -1.0]), env_steps=0)
    second.restore(first.state())
    for learning in (first, second):
        learning.learners["main"].learn(rows(8, returns=[1.0]), env_steps=0)
    after, again = first.tensors(env_steps=0), second.tensors(env_steps=0)
    assert after.keys() == again.keys()
    assert all((after[name] == again[name]).all() for name in after)
    assert first.learners["main"].state()["won"] == second.learners["main"].state()["won"]
