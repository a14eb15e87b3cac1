"""What is optimized in self-play: PPO's loss over the rows of the agents that the learning policy plays; and when it is frozen."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.acting.league import LEARNS, League
from rollstream.acting.policy_set import PolicyMember
from rollstream.algorithms.policies import PolicyAgents, make_policy, parts
from rollstream.algorithms.ppo.agent import PpoAgent
from rollstream.algorithms.self_play.config import SelfPlayConfig
from rollstream.config import PolicySettings
from rollstream.learning import Learned, LearningAgent, PolicyLearners, SampledItems
from rollstream.seeding import child_seed
from rollstream.spaces import AgentSpaces, Batch, Column, Columns, Leaf, PolicyView

__all__ = ["MAIN", "SelfPlayAgent"]

MAIN = "main"
"""Name of the policy that learns."""
JUDGED_EPISODES = 100
"""Episodes against snapshots over which the win rate is taken."""

Tensors = dict[str, npt.NDArray[np.float32]]


class SelfPlayAgent(PolicyAgents):
    """One PPO policy for all agents of an environment, given by its leaves, and the league that it plays against."""

    def __init__(self, config: SelfPlayConfig, *, observation: tuple[Leaf, ...], actions: tuple[Leaf, ...]) -> None:
        def make(name: str, agent: AgentSpaces) -> PpoAgent:
            return PpoAgent(config, observation=agent.observation, actions=agent.actions)

        found = parts({MAIN: PolicySettings()}, make, observation=observation, actions=actions)
        super().__init__(config, found, actions=actions)
        self._main = found[0]

    @property
    def extra_columns(self) -> tuple[Column, ...]:
        learns = (replace(LEARNS, name=agent.joint(LEARNS.name)) for agent in self._main.agents)
        return (*super().extra_columns, *learns)

    def view(self, policy: str) -> PolicyView:
        return replace(super().view(policy), drawn=True)

    def make_policy(self, *, envs: int, generator: np.random.Generator) -> League:
        rows = envs * len(self._main.agents)
        return League(
            PolicyMember(
                name=MAIN,
                agents=self._main.agents,
                policy=make_policy(self._main.agent, envs=rows, generator=generator),
            ),
            envs=envs,
            opponent=lambda: make_policy(self._main.agent, envs=rows, generator=generator),
            latest_share=self.config.latest_share,
            generator=generator,
        )

    def learning(self, *, seed: int) -> LearningAgent:
        learner = self._main.agent.learning(seed=child_seed(seed, "policy", MAIN))
        return PolicyLearners({MAIN: _LeagueLearning(learner, self.config)}, tables={})


class _LeagueLearning:
    """PPO's learning half, and the snapshots of it. What it was at the start is the first."""

    def __init__(self, learner: LearningAgent, config: SelfPlayConfig) -> None:
        self._learner = learner
        self._config = config
        self._league: dict[int, Tensors] = {}
        self._frozen = 0
        self._updates = 0
        self._won: deque[bool] = deque(maxlen=JUDGED_EPISODES)
        self._freeze(env_steps=0)

    def learn(self, batch: Batch, *, env_steps: int) -> Learned:
        learned = self._learner.learn(batch, env_steps=env_steps)
        self._updates += learned.updates
        self._won.extend(bool(won) for won in batch.episodes.returns > 0)
        win_rate = float(np.mean(self._won)) if self._won else 0.0
        if self._has_grown(win_rate):
            self._freeze(env_steps=env_steps)
        told = {"win_rate": win_rate, "snapshots": float(len(self._league)), "newest_snapshot": float(self._frozen - 1)}
        return Learned(updates=learned.updates, metrics={**learned.metrics, **told}, columns=learned.columns)

    def columns(self, sample: SampledItems, *, env_steps: int) -> Columns:
        return self._learner.columns(sample, env_steps=env_steps)

    def tensors(self, *, env_steps: int) -> Mapping[str, npt.NDArray[np.float32]]:
        frozen = {f"{number}/{name}": tensor for number, league in self._league.items() for name, tensor in league.items()}
        return {**self._learner.tensors(env_steps=env_steps), **frozen}

    def sync_target(self) -> None:
        self._learner.sync_target()

    def state(self) -> dict[str, Any]:
        return {
            "learner": self._learner.state(),
            "league": {str(number): dict(tensors) for number, tensors in self._league.items()},
            "frozen": self._frozen,
            "updates": self._updates,
            "won": [int(won) for won in self._won],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        self._learner.restore(state["learner"])
        self._league = {int(number): dict(tensors) for number, tensors in state["league"].items()}
        self._frozen, self._updates = int(state["frozen"]), int(state["updates"])
        self._won = deque((bool(won) for won in state["won"]), maxlen=JUDGED_EPISODES)

    def _has_grown(self, win_rate: float) -> bool:
        config = self._config
        by_updates = config.snapshot_every_updates is not None and self._updates >= config.snapshot_every_updates
        judged = config.snapshot_win_rate is not None and len(self._won) == JUDGED_EPISODES
        return by_updates or (judged and win_rate >= (config.snapshot_win_rate or 0.0))

    def _freeze(self, *, env_steps: int) -> None:
        tensors = self._learner.tensors(env_steps=env_steps)
        self._league[self._frozen] = {name: np.array(tensor, np.float32) for name, tensor in tensors.items()}
        self._frozen += 1
        self._updates = 0
        self._won.clear()
        while len(self._league) > self._config.league_size:
            del self._league[min(self._league)]
