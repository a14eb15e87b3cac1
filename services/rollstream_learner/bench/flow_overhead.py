"""PPO in one thread, as a flow and written by hand: the same environments, policy, advantages, updates; only the flow differs."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.acting import ActorProcess
from rollstream.algorithms import make_agent, make_flow
from rollstream.algorithms.policies import make_policy
from rollstream.clock import Clock
from rollstream.config import EnvironmentSpec
from rollstream.envs import Collector, make_environment
from rollstream.flow import ActorFragment, Description, InlineEdges, Runner
from rollstream.flow.steps.advantages import rollout_advantages
from rollstream.learning import LearnerProcess
from rollstream.metrics import Counters, Waits
from rollstream.seeding import child_generator
from rollstream.spaces import Batch, Flag, row_spec

__all__ = ["LoopAsFlow", "LoopByHand", "measure_overhead"]

ENVIRONMENT, ENVS = "CartPole-v1", 8
BLOCK_S = 0.25


def measure_overhead(*, seconds: float, clock: Clock) -> dict[str, Any]:
    """Blocks of rounds (rollout, advantages, updates, new weights) by turns: environment steps per second, and the flow's share.

    The share is the median over pairs of neighbouring blocks, so a machine that is busy for a while counts on both sides. A block
    of the flow ends with its report.
    """
    by_hand, flow = LoopByHand(clock), LoopAsFlow(clock, report_every_s=BLOCK_S)
    hand_rates: list[float] = []
    flow_rates: list[float] = []
    try:
        for run in (by_hand.block, flow.block):
            _rate(run, clock)
        for number in range(max(2, round(seconds / (2 * BLOCK_S)))):
            turns = [(by_hand.block, hand_rates), (flow.block, flow_rates)]
            for run, rates in turns if number % 2 else turns[::-1]:
                rates.append(_rate(run, clock))
    finally:
        by_hand.close()
        flow.close()
    return {
        "pairs": len(flow_rates),
        "by_hand_env_steps_per_s": round(statistics.median(hand_rates)),
        "flow_env_steps_per_s": round(statistics.median(flow_rates)),
        "share_of_hand_written_loop": round(
            statistics.median(ours / hand for ours, hand in zip(flow_rates, hand_rates, strict=True)), 4
        ),
    }


def _rate(block: Callable[[], int], clock: Clock) -> float:
    start_s = clock.monotonic_s()
    steps = block()
    return steps / (clock.monotonic_s() - start_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Weights:
    version: int
    tensors: Mapping[str, npt.NDArray[Any]]


class _Parts:
    """What both are made of, from the same seeds."""

    def __init__(self, clock: Clock, *, report_every_s: float = 1.0) -> None:
        self.environment = make_environment(EnvironmentSpec(id=ENVIRONMENT), envs=ENVS, seed=0)
        observation, actions = self.environment.observation_leaves, self.environment.action_leaves
        self.agent: Any = make_agent(
            "ppo", {"mode": "numpy", "report_every_s": report_every_s}, observation=observation, actions=actions
        )
        self.policy: Any = make_policy(self.agent, envs=ENVS, generator=child_generator(0, "bench", "flow"))
        rows = row_spec(observation, actions, extra=self.agent.extra_columns)
        self.collector = Collector(self.environment, row_spec=rows, policy=self.policy, clock=clock)
        self.learning: Any = self.agent.learning(seed=0)


class LoopByHand:
    """The loop that one would write without a flow."""

    def __init__(self, clock: Clock) -> None:
        self.parts = _Parts(clock)
        self._clock = clock
        self.env_steps = 0
        self.returns: list[float] = []
        self._load(1)

    def block(self) -> int:
        """Rounds for as long as the flow takes between two reports; environment steps."""
        before, end_s = self.env_steps, self._clock.monotonic_s() + BLOCK_S
        while self._clock.monotonic_s() < end_s:
            self.round()
        return self.env_steps - before

    def round(self) -> None:
        """Rollout, advantages, updates, new weights."""
        parts, config = self.parts, self.parts.agent.config
        rollout = parts.collector.collect(config.rollout_steps, version=parts.policy.version)
        bootstrap = parts.policy.values(rollout.next_observation)
        advantage = rollout_advantages(rollout, bootstrap, discount=config.discount, gae_lambda=config.gae_lambda)
        kept = np.flatnonzero((rollout.rows["flags"] & Flag.FINAL) == 0)
        columns = {name: rollout.rows[name][kept] for name in ("observation", "action", "log_prob")}
        advantage = advantage[kept]
        columns["return"] = advantage + rollout.rows["value"][kept]
        mean, deviation = float(advantage.mean(dtype=np.float64)), float(advantage.std(dtype=np.float64))
        columns["advantage"] = ((advantage - mean) / (deviation + 1e-8)).astype(np.float32)
        self.env_steps += rollout.env_steps
        self.returns += rollout.episodes.returns.tolist()
        version = parts.policy.version
        parts.learning.learn(
            Batch(columns=columns, env_steps=rollout.env_steps, version=version, newest_version=version), env_steps=self.env_steps
        )
        self._load(version + 1)

    def close(self) -> None:
        """End the environments."""
        self.parts.environment.close()

    def _load(self, version: int) -> None:
        tensors = self.parts.learning.tensors(env_steps=self.env_steps)
        self.parts.policy.load(_Weights(version=version, tensors={name: np.array(tensor) for name, tensor in tensors.items()}))


class LoopAsFlow:
    """PPO's own flow with an inline runner, as `rollstream train --inline` runs it."""

    def __init__(self, clock: Clock, *, report_every_s: float) -> None:
        self.parts = _Parts(clock, report_every_s=report_every_s)
        parts, board, counters = self.parts, _Board(), Counters()
        flow = Description(make_flow("ppo", parts.agent, actors=1), tables=parts.agent.table_names)
        side = ActorProcess(
            actor="actor-0",
            clock=clock,
            source=parts.collector,
            policy=parts.policy,
            weights=board,
            sink=_no_table,
            agent=parts.agent,
        )
        edges = InlineEdges([ActorFragment(flow, side)])
        learner = LearnerProcess(
            agent=parts.learning,
            weights=board,
            counters=counters,
            waits=Waits(clock),
            clock=clock,
            edge=lambda name, in_flight: edges.source(name, in_flight=in_flight),
            tables={},
            version=0,
        )
        learner.publish()
        self._counters = counters
        self._runner = Runner(flow, learner, inline=True)

    def block(self) -> int:
        """Rounds until the next report; environment steps."""
        before = self._counters.value("env_steps_trained")
        next(self._runner)
        return self._counters.value("env_steps_trained") - before

    def close(self) -> None:
        """End the environments."""
        self._runner.close()
        self.parts.environment.close()


def _no_table(table: str, rule: Any, environments: int) -> Any:
    """PPO writes to none."""


class _Board:
    """The newest weights, copied since the learner goes on changing its own."""

    def __init__(self) -> None:
        self._newest = _Weights(version=0, tensors={})

    def publish(self, version: int, tensors: Mapping[str, npt.NDArray[np.float32]]) -> None:
        self._newest = _Weights(version=version, tensors={name: np.array(tensor) for name, tensor in tensors.items()})

    def fetch_if_newer(self, than: int) -> _Weights | None:
        return self._newest if self._newest.version > than else None
