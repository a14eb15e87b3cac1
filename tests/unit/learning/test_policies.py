"""Learning halves of several policies: their tensors, states and verbs stand under their names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from rollstream.clock import FakeClock
from rollstream.errors import ConfigError
from rollstream.learning import Learned, LearnerProcess, PolicyLearners
from rollstream.metrics import Counters, Waits
from rollstream.spaces import Batch


class Adding:
    """Learns by adding the number of rows of every batch to its only weight."""

    def __init__(self) -> None:
        self.weight = 0.0
        self.target = 0.0

    def learn(self, batch: Batch, *, env_steps: int) -> Learned:
        self.weight += batch.rows
        return Learned(updates=2, metrics={"loss": self.weight})

    def columns(self, sample: Any, *, env_steps: int) -> dict[str, Any]:
        return {"told": np.array([self.weight])}

    def tensors(self, *, env_steps: int) -> Mapping[str, Any]:
        return {"weight": np.array([self.weight], np.float32), "scalar.epsilon": np.array([0.5], np.float32)}

    def sync_target(self) -> None:
        self.target = self.weight

    def state(self) -> dict[str, Any]:
        return {"weight": self.weight}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.weight = float(state["weight"])


class Board:
    """Keeps what was published last."""

    published: Mapping[str, Any] = {}

    def publish(self, version: int, tensors: Mapping[str, Any]) -> None:
        self.published = tensors


def batch(rows: int) -> Batch:
    return Batch(columns={"x": np.zeros(rows)}, env_steps=0, version=1, newest_version=1)


def made() -> tuple[LearnerProcess, PolicyLearners, Board, Counters]:
    agent = PolicyLearners({"ppo": Adding(), "dqn": Adding()}, tables={"replay": "dqn"})
    board, counters, clock = Board(), Counters(), FakeClock()
    side = LearnerProcess(
        agent=agent,
        weights=board,
        counters=counters,
        waits=Waits(clock),
        clock=clock,
        edge=lambda name, in_flight: pytest.fail("no edge"),
        tables={},
        version=0,
    )
    return side, agent, board, counters


def test_one_policy_learns_and_both_are_published_in_one_blob() -> None:
    side, _, board, counters = made()
    told = side.learn(batch(3), policy="dqn")
    side.publish()
    assert told.metrics == {"dqn.loss": 3.0}
    assert {name: float(tensor[0]) for name, tensor in board.published.items()} == {
        "ppo/weight": 0.0,
        "ppo/scalar.epsilon": 0.5,
        "dqn/weight": 3.0,
        "dqn/scalar.epsilon": 0.5,
    }
    assert (side.updates(), side.updates(policy="dqn"), side.updates(policy="ppo")) == (2, 2, 0)
    assert counters.snapshot()["updates{dqn}"] == 2


def test_a_target_is_that_of_the_policy_that_is_named() -> None:
    side, agent, _, _ = made()
    side.learn(batch(3), policy="ppo")
    side.learn(batch(4), policy="dqn")
    side.sync_target(policy="dqn")
    assert [learner.target for learner in agent.learners.values()] == [0.0, 4.0]  # type: ignore[attr-defined]
    side.sync_target()
    assert [learner.target for learner in agent.learners.values()] == [3.0, 4.0]  # type: ignore[attr-defined]


def test_all_policies_survive_a_restart() -> None:
    side, agent, _, _ = made()
    side.learn(batch(3), policy="ppo")
    side.learn(batch(4), policy="dqn")
    _, other, _, _ = made()
    other.restore(agent.state())
    assert other.state() == {"ppo": {"weight": 3.0}, "dqn": {"weight": 4.0}}


def test_verbs_that_name_no_policy_or_a_wrong_one_are_refused() -> None:
    side, agent, _, _ = made()
    with pytest.raises(ConfigError, match="update for which policy. There are several: ppo, dqn"):
        side.learn(batch(1))
    with pytest.raises(ConfigError, match="samples for which policy"):
        agent.columns(None, env_steps=0)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="there is no policy 'sac' here; there are: ppo, dqn"):
        side.learn(batch(1), policy="sac")
