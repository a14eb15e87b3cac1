"""Small games with PettingZoo's parallel interface (which they do not import): for tests, examples and learning proofs.

They are named like any environment, by entry point: `rollstream.envs.multi_agent.toy:TwoStepGame`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

__all__ = ["Meeting", "Pursuit", "TwoStepGame", "Visitors"]

Observations = dict[str, npt.NDArray[Any]]
Infos = dict[str, dict[str, Any]]
Outcome = tuple[Observations, dict[str, float], dict[str, bool], dict[str, bool], Infos]

MOVES = ((0, 0), (0, 1), (0, -1), (1, 0), (-1, 0))
"""Stay, and the four neighbours."""


class TwoStepGame:
    """The game of Rashid et al. 2018, section 6: two agents; the first one's choice picks the payoff matrix of the second step.

        left: 7 for every pair of actions        right: 0 and 1 off the diagonal ... 8 where both choose the second action

    The best return is 8. Learners that value each agent's action alone (IQL, VDN) end with 7, since they cannot say that the
    worth of one agent's action depends on the other's. Both agents get the payoff; the state is the observation of both.
    """

    PAYOFFS = (((7.0, 7.0), (7.0, 7.0)), ((0.0, 1.0), (1.0, 8.0)))

    def __init__(self) -> None:
        self.possible_agents = ["first", "second"]
        self.agents: list[str] = []
        self.state_space = spaces.Box(0, 1, (3,), np.float32)
        self._place = 0

    def observation_space(self, agent: str) -> Any:
        return spaces.Box(0, 1, (3,), np.float32)

    def action_space(self, agent: str) -> Any:
        return spaces.Discrete(2)

    def state(self) -> npt.NDArray[np.float32]:
        found: npt.NDArray[np.float32] = np.eye(3, dtype=np.float32)[self._place]
        return found

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Observations, Infos]:
        self.agents = list(self.possible_agents)
        self._place = 0
        return self._observe(), {}

    def step(self, actions: Mapping[str, Any]) -> Outcome:
        ends, reward = self._place > 0, 0.0
        if ends:
            reward = self.PAYOFFS[self._place - 1][int(actions["first"])][int(actions["second"])]
        else:
            self._place = 1 + int(actions["first"])
        observations = self._observe()
        self.agents = [] if ends else self.agents
        return observations, dict.fromkeys(observations, reward), dict.fromkeys(observations, ends), _never(observations), {}

    def close(self) -> None:
        """Nothing is held."""

    def _observe(self) -> Observations:
        return {agent: self.state() for agent in self.possible_agents}


class Meeting:
    """Agents on a line are paid for standing on different posts: the smallest form of PettingZoo's `simple_spread`.

    Each agent sees where all are (itself first) and moves left, stays, or moves right. Everybody's reward is the share of posts
    (the two ends and, from three agents on, places between) that somebody stands on, minus a quarter of pairs that share a place.

    Args:
        agents: how many, 2 to 4; there are as many posts.
        length: places of the line.
        steps: environment steps of an episode, which is truncated then.
    """

    def __init__(self, *, agents: int = 2, length: int = 7, steps: int = 20) -> None:
        self.possible_agents = [f"agent_{index}" for index in range(agents)]
        self.agents: list[str] = []
        self.state_space = spaces.Box(-1, 1, (agents,), np.float32)
        self._length, self._limit = length, steps
        self._posts = set(np.linspace(0, length - 1, agents).round().astype(int).tolist())
        self._generator = np.random.default_rng(0)
        self._at = [0] * agents
        self._step = 0

    def observation_space(self, agent: str) -> Any:
        return spaces.Box(-1, 1, (len(self.possible_agents),), np.float32)

    def action_space(self, agent: str) -> Any:
        return spaces.Discrete(3)

    def state(self) -> npt.NDArray[np.float32]:
        return np.array(self._scaled(0), np.float32)

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Observations, Infos]:
        if seed is not None:
            self._generator = np.random.default_rng(seed)
        self.agents = list(self.possible_agents)
        self._at = self._generator.integers(0, self._length, len(self.possible_agents)).tolist()
        self._step = 0
        return self._observe(), {}

    def step(self, actions: Mapping[str, Any]) -> Outcome:
        last = self._length - 1
        moved = [at + int(actions[agent]) - 1 for agent, at in zip(self.possible_agents, self._at, strict=True)]
        self._at = [min(max(at, 0), last) for at in moved]
        self._step += 1
        taken = set(self._at)
        covered = len(taken & self._posts) / len(self._posts)
        pairs = len(self._at) - len(taken)
        over = self._step >= self._limit
        observations = self._observe()
        self.agents = [] if over else self.agents
        reward = dict.fromkeys(observations, covered - 0.25 * pairs)
        return observations, reward, _never(observations), dict.fromkeys(observations, over), {}

    def close(self) -> None:
        """Nothing is held."""

    def _observe(self) -> Observations:
        return {agent: np.array(self._scaled(index), np.float32) for index, agent in enumerate(self.possible_agents)}

    def _scaled(self, first: int) -> list[float]:
        """Where all are, between -1 and 1, beginning with the agent `first`."""
        scaled = [2.0 * at / (self._length - 1) - 1.0 for at in self._at]
        return [*scaled[first:], *scaled[:first]]


class Pursuit:
    """Two agents on a grid with walls around it, zero-sum: the hunter gains 1 and the runner loses 1 when they meet, and the other
    way round when they have not met in time. Both move at once; staying is a move.

    Each sees where it is and where the other is relative to it, the time that is left, and which of the two it is.

    Args:
        size: width and height of the grid.
        steps: environment steps that the runner has to hold out.
    """

    def __init__(self, *, size: int = 4, steps: int = 12) -> None:
        self.possible_agents = ["hunter", "runner"]
        self.agents: list[str] = []
        self._size, self._limit = size, steps
        self._generator = np.random.default_rng(0)
        self._at = [(0, 0), (0, 1)]
        self._step = 0

    def observation_space(self, agent: str) -> Any:
        return spaces.Box(-1, 1, (6,), np.float32)

    def action_space(self, agent: str) -> Any:
        return spaces.Discrete(len(MOVES))

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Observations, Infos]:
        if seed is not None:
            self._generator = np.random.default_rng(seed)
        self.agents = list(self.possible_agents)
        places = self._generator.choice(self._size * self._size, 2, replace=False).tolist()
        self._at = [divmod(place, self._size) for place in places]
        self._step = 0
        return self._observe(), {}

    def step(self, actions: Mapping[str, Any]) -> Outcome:
        before, last = self._at, self._size - 1
        moves = [MOVES[int(actions[agent])] for agent in self.possible_agents]
        self._at = [
            (min(max(row + down, 0), last), min(max(column + right, 0), last))
            for (row, column), (down, right) in zip(before, moves, strict=True)
        ]
        self._step += 1
        crossed = self._at[0] == before[1] and self._at[1] == before[0]
        met = self._at[0] == self._at[1] or crossed
        over = met or self._step >= self._limit
        gain = 0.0 if not over else 1.0 if met else -1.0
        observations = self._observe()
        self.agents = [] if over else self.agents
        return observations, {"hunter": gain, "runner": -gain}, dict.fromkeys(observations, over), _never(observations), {}

    def close(self) -> None:
        """Nothing is held."""

    def _observe(self) -> Observations:
        scale = float(max(self._size - 1, 1))
        left = 1.0 - self._step / self._limit
        found = {}
        for index, agent in enumerate(self.possible_agents):
            (row, column), (other_row, other_column) = self._at[index], self._at[1 - index]
            place = (2.0 * row / scale - 1.0, 2.0 * column / scale - 1.0)
            towards = ((other_row - row) / scale, (other_column - column) / scale)
            found[agent] = np.array((*place, *towards, left, float(index)), np.float32)
        return found


class Visitors:
    """Agents that come and go, and count: the observation is [agent, episode, steps since it came].

    `host` stays for 6 steps. `early` is there from the start and terminates after 2 steps. `late` comes after step 3 and is
    truncated together with the host; `brief` comes after step 2 and leaves after one step, terminated. The reward is
    10 * (place of the agent) + steps since it came.
    """

    STAYS = (("host", 0, 6, False), ("early", 0, 2, True), ("late", 3, 6, False), ("brief", 2, 3, True))

    def __init__(self) -> None:
        self.possible_agents = [name for name, _, _, _ in self.STAYS]
        self.agents: list[str] = []
        self._episode, self._step = -1, 0

    def observation_space(self, agent: str) -> Any:
        return spaces.Box(0, 1 << 20, (3,), np.int64)

    def action_space(self, agent: str) -> Any:
        return spaces.Discrete(3)

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Observations, Infos]:
        self._episode += 1
        self._step = 0
        self.agents = [name for name, comes, _, _ in self.STAYS if comes == 0]
        return {agent: self._observe(agent) for agent in self.agents}, {}

    def step(self, actions: Mapping[str, Any]) -> Outcome:
        if sorted(actions) != sorted(self.agents):
            raise ValueError(f"actions of {sorted(actions)}, but {sorted(self.agents)} are here")
        acted = list(self.agents)
        rewards = {agent: 10.0 * self.possible_agents.index(agent) + self._since(agent) for agent in acted}
        self._step += 1
        leaves = {name: self._step == until for name, _, until, _ in self.STAYS}
        terminal = {name: is_terminal for name, _, _, is_terminal in self.STAYS}
        comes = [name for name, begin, _, _ in self.STAYS if begin == self._step]
        self.agents = [agent for agent in self.possible_agents if (agent in acted and not leaves[agent]) or agent in comes]
        observations = {agent: self._observe(agent) for agent in self.possible_agents if agent in acted or agent in comes}
        terminated = {agent: leaves[agent] and terminal[agent] for agent in acted}
        truncated = {agent: leaves[agent] and not terminal[agent] for agent in acted}
        return observations, rewards, terminated, truncated, {}

    def close(self) -> None:
        """Nothing is held."""

    def _since(self, agent: str) -> int:
        return self._step - self.STAYS[self.possible_agents.index(agent)][1]

    def _observe(self, agent: str) -> npt.NDArray[np.int64]:
        return np.array([self.possible_agents.index(agent), self._episode, self._since(agent)], np.int64)


def _never(observations: Observations) -> dict[str, bool]:
    return dict.fromkeys(observations, False)
