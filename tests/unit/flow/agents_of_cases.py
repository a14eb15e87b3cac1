"""Actors of the conformance suite whose steps need an agent: one agent with every method that a step of ours asks for, as a toy."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.clock import FakeClock
from rollstream.config import EnvironmentSpec
from rollstream.envs import Collector, make_environment
from rollstream.flow.steps.noise_table import NoiseTable
from rollstream.flow.toy import ToyActor
from rollstream.graph import ActorCriticPolicy
from rollstream.graph.declare import declare
from rollstream.graph.policies.greedy_policy import GreedyPolicy
from rollstream.spaces import AgentSpaces, Column, Columns, Leaf, PolicyView, Rollout, agents_of, row_spec

OBSERVATION = (Leaf(name="observation", kind="box", dtype="<f4", shape=(1,)),)
ACTIONS = (Leaf(name="action", kind="discrete", dtype="<i8", shape=(), counts=(2,), starts=(0,)),)
TOYS = "rollstream.envs.multi_agent.toy"
SIZE = 3
TOLD = ("value", "log_prob")


class Training:
    """Parameters and optimizer for `train_with_peers`: adds each gradient."""

    def __init__(self) -> None:
        self.updates = 0
        self._flat = np.zeros(SIZE, np.float32)

    def start(self, tensors: Mapping[str, npt.NDArray[Any]]) -> None:
        self._flat[...] = 0

    def gradient(self, columns: Columns) -> Any:
        return gradient_of(columns)

    def apply(self, vector: npt.NDArray[np.float32], *, env_steps: int) -> Mapping[str, float]:
        self.updates += 1
        self._flat += vector
        return {"updates": 1.0, "skipped_updates": 0.0}

    def parameters(self) -> npt.NDArray[np.float32]:
        return self._flat

    def tensors(self) -> Mapping[str, npt.NDArray[np.float32]]:
        return {"w": self._flat}


class Agent:
    """Knows every verb."""

    def __init__(self) -> None:
        self.policy = GreedyPolicy(ActorCriticPolicy(OBSERVATION, ACTIONS, hidden=(), value=False))
        self.noise = NoiseTable(seed=5, numbers=1_000)

    def gradients(self) -> Agent:
        return self

    def gradient(self, columns: Columns, tensors: Mapping[str, Any]) -> Any:
        return gradient_of(columns)

    def adaptation(self) -> Agent:
        return self

    def adapted(self, columns: Columns, tensors: Mapping[str, Any]) -> Mapping[str, Any]:
        return {name: tensor + 1 for name, tensor in tensors.items()}

    def training(self) -> Training:
        return Training()


def gradient_of(columns: Columns) -> Any:
    """The mean advantage, over and over."""
    advantage = columns["advantage"]
    return SimpleNamespace(vector=np.full(SIZE, advantage.mean(), np.float32), rows=len(advantage), metrics={}, is_finite=True)


def lone_actor(**settings: Any) -> ToyActor:
    """One agent in each environment, and weights that are those of its policy."""
    agent = Agent()
    layout = declare(agent.policy).layout
    return ToyActor(agent=agent, weights=layout.split(np.zeros(layout.size, np.float32)), **settings)


class JointActor(ToyActor):
    """An actor in whose environment four agents come and go, all played by one policy; it acts without looking."""

    def __init__(self, **settings: Any) -> None:
        environment = make_environment(EnvironmentSpec(id=f"{TOYS}:Visitors"), envs=2, seed=0, allow=[TOYS])
        agents = agents_of(environment.observation_leaves, environment.action_leaves)
        extra = tuple(Column(name=f"{name}.{agent.name}", dtype="<f4") for agent in agents for name in TOLD)
        rows = row_spec(environment.observation_leaves, environment.action_leaves, extra=extra)
        self._collector = Collector(environment, row_spec=rows, policy=_Still(agents), clock=FakeClock())
        seen = row_spec(agents[0].observation, agents[0].actions, extra=tuple(Column(name=name, dtype="<f4") for name in TOLD))
        view = PolicyView(name="seer", agents=agents, rows=seen)
        super().__init__(agent=SimpleNamespace(view=lambda policy: view), **settings)

    def collect(self, *, steps: int, pull: bool = True) -> Rollout:
        return self._collector.collect(steps, version=1)


class _Still:
    """Does 0, and tells 0.5 of everything."""

    def __init__(self, agents: tuple[AgentSpaces, ...]) -> None:
        self._agents = agents

    def act(self, observation: Columns) -> Columns:
        found: dict[str, npt.NDArray[Any]] = {}
        for agent in self._agents:
            copies = len(observation[f"observation.{agent.name}"])
            found[f"action.{agent.name}"] = np.zeros(copies, np.int64)
            found.update({f"{name}.{agent.name}": np.full(copies, 0.5, np.float32) for name in TOLD})
        return found
