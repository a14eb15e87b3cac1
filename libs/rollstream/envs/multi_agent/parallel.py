"""Plain copies of a PettingZoo parallel environment, stepped one after another, as one `VectorEnvironment`.

    reset() -> {agent: observation}, infos       step({agent: action}) -> observations, rewards, terminations, truncations, infos

One row of a copy holds all agents that may ever be there (`rollstream.spaces.agents`); what an absent agent would see is zero. The
reward of the row is the mean over those agents, so that a reward that all share keeps its size; each agent's own stands in the
next row. A copy's episode ends when no agent is left. PettingZoo is not needed: only its interface is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from rollstream.envs.closing import close_within
from rollstream.envs.faults import USER_ERRORS, environment_fault
from rollstream.envs.vector_environment import FinalObservations, Step
from rollstream.errors import ConfigError, EnvironmentFault
from rollstream.graph.components.features import MASK
from rollstream.spaces import Columns, Leaf, Presence, SpaceLayout
from rollstream.spaces.agents import ALL, REWARDS, STATE, STATUS

__all__ = ["Parallel", "ParallelEnvironments", "is_parallel"]

Array = npt.NDArray[Any]
ENDED = Presence.TERMINATED | Presence.TRUNCATED


class Parallel(Protocol):
    """PettingZoo's parallel interface, as far as it is used.

    Attributes:
        possible_agents: all that may ever be there, in a fixed order.
        agents: those that are there now.
    """

    possible_agents: list[str]
    agents: list[str]

    def observation_space(self, agent: str) -> Any: ...
    def action_space(self, agent: str) -> Any: ...
    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Mapping[str, Any], Any]: ...
    def step(self, actions: Mapping[str, Any]) -> Any: ...
    def close(self) -> None: ...


def is_parallel(environment: object) -> bool:
    """Whether `environment` has PettingZoo's parallel interface (and is not one that takes turns)."""
    wanted = ("possible_agents", "observation_space", "action_space", "reset", "step")
    return all(hasattr(environment, name) for name in wanted) and not hasattr(environment, "agent_iter")


class ParallelEnvironments:
    """N copies that `build` makes; see `VectorEnvironment` for its attributes and methods.

    Args:
        seeds: seed of each copy's first reset.
        options: reset options, passed at every reset.
        max_episode_steps: environment steps after which all agents are truncated; None: the environment's own limit.
    """

    def __init__(
        self,
        build: Callable[[], Any],
        *,
        name: str,
        seeds: Sequence[int],
        options: Mapping[str, Any] | None = None,
        max_episode_steps: int | None = None,
    ) -> None:
        self.name = name
        self.envs = len(seeds)
        self.resets_on_next_step = False
        self._seeds: list[int | None] = list(seeds)
        self._options = dict(options or {})
        self._limit = max_episode_steps
        self._copies: list[Parallel] = [build() for _ in seeds]
        self._agents = _names(self._copies[0], name)
        first = self._copies[0]
        self._observations = {
            agent: SpaceLayout(first.observation_space(agent), f"observation.{agent}") for agent in self._agents
        }
        self._actions = {agent: SpaceLayout(first.action_space(agent), f"action.{agent}") for agent in self._agents}
        space = getattr(first, "state_space", None)
        self._state = None if space is None else SpaceLayout(space, STATE)
        self.observation_leaves: tuple[Leaf, ...] = (
            *(leaf for layout in self._observations.values() for leaf in layout.leaves),
            *_leaves_of_all(len(self._agents)),
            *(() if self._state is None else self._state.leaves),
        )
        self.action_leaves: tuple[Leaf, ...] = tuple(leaf for layout in self._actions.values() for leaf in layout.leaves)
        self._present: list[list[str]] = [[] for _ in seeds]
        self._steps = np.zeros(self.envs, np.int64)
        self._closed = False

    def reset(self, options: Mapping[str, Any] | None = None) -> Columns:
        self._options.update(options or {})
        moments = [self._reset(index, seed=seed) for index, seed in enumerate(self._seeds)]
        self._seeds = [None] * self.envs
        return self._columns(moments, "reset")

    def step(self, actions: Columns) -> Step:
        moments = [self._step(index, actions) for index in range(self.envs)]
        reward = np.asarray([moment.reward.mean() for moment in moments])
        ended = [index for index, present in enumerate(self._present) if not present]
        terminated, truncated = np.zeros((2, self.envs), np.bool_)
        final = None
        if ended:
            for index in ended:
                last = moments[index].status[moments[index].status != 0]
                truncated[index] = ((last & Presence.TRUNCATED) != 0).any()
                terminated[index] = not truncated[index]
            final = FinalObservations(
                environments=np.asarray(ended, np.int64), observation=self._columns([moments[index] for index in ended], "step")
            )
            for index in ended:
                moments[index] = self._reset(index, seed=None)
        return Step(
            observation=self._columns(moments, "step"), reward=reward, terminated=terminated, truncated=truncated, final=final
        )

    def close(self, *, timeout_s: float = 5.0) -> None:
        if not self._closed:
            self._closed = True
            close_within(self._close_copies, name=self.name, timeout_s=timeout_s)

    def _reset(self, index: int, *, seed: int | None) -> _Moment:
        copy = self._copies[index]
        try:
            observations = dict(copy.reset(seed=seed, options=dict(self._options) or None)[0])
            present = list(copy.agents)
            state = None if self._state is None else self._read_state(copy)
        except USER_ERRORS as error:
            raise environment_fault(self.name, "reset", error, environment=index) from error
        if not present:
            raise EnvironmentFault(f"environment {self.name!r} (copy {index}) in reset: began an episode without any agent")
        moment = _Moment(agents=len(self._agents), observations=self._checked(index, "reset", observations, present), state=state)
        moment.status[[self._agents[agent] for agent in present]] = Presence.ACTS | Presence.FIRST
        self._present[index] = present
        self._steps[index] = 0
        return moment

    def _step(self, index: int, actions: Columns) -> _Moment:
        copy, acted = self._copies[index], self._present[index]
        chosen = {agent: self._actions[agent].write_one(actions, index) for agent in acted}
        try:
            observations, rewards, terminations, truncations, _ = copy.step(chosen)
            terminated = {agent for agent in acted if terminations.get(agent, False)}
            truncated = {agent for agent in acted if truncations.get(agent, False)}
            state = None if self._state is None else self._read_state(copy)
        except USER_ERRORS as error:
            raise environment_fault(self.name, "step", error, environment=index) from error
        present = [agent for agent in copy.agents if agent not in terminated | truncated]
        for agent in acted:
            if agent not in rewards:
                raise self._fault(index, "step", f"no reward for agent {agent!r}, which acted")
            if agent not in present and agent not in terminated | truncated:
                raise self._fault(index, "step", f"agent {agent!r} left, but is neither terminated nor truncated")
        shown = [*acted, *(agent for agent in present if agent not in acted)]
        seen = self._checked(index, "step", observations, shown)
        self._steps[index] += 1
        if self._limit is not None and self._steps[index] >= self._limit:
            truncated |= set(present)
            present = []
        moment = _Moment(agents=len(self._agents), observations=seen, state=state)
        for agent in present:
            moment.status[self._agents[agent]] = Presence.ACTS if agent in acted else Presence.ACTS | Presence.FIRST
        for agent in acted:
            place = self._agents[agent]
            moment.reward[place] = rewards[agent]
            moment.status[place] |= (agent in terminated) * Presence.TERMINATED | (agent in truncated) * Presence.TRUNCATED
        self._present[index] = present
        return moment

    def _checked(self, index: int, call: str, observations: Mapping[str, Any], shown: Sequence[str]) -> dict[str, Any]:
        for agent in shown:
            if agent not in self._agents:
                raise self._fault(index, call, f"agent {agent!r} is not one of its possible_agents: {', '.join(self._agents)}")
            if agent not in observations:
                raise self._fault(index, call, f"no observation for agent {agent!r}")
        return {agent: observations[agent] for agent in shown}

    def _fault(self, index: int, call: str, what: str) -> EnvironmentFault:
        return EnvironmentFault(f"environment {self.name!r} (copy {index}) in {call}: {what}")

    def _columns(self, moments: Sequence[_Moment], call: str) -> dict[str, Array]:
        columns: dict[str, Array] = {}
        try:
            for agent, layout in self._observations.items():
                there = [row for row, moment in enumerate(moments) if agent in moment.observations]
                seen = layout.read_each([moments[row].observations[agent] for row in there]) if there else {}
                for leaf in layout.leaves:
                    column = np.zeros((len(moments), *leaf.shape), leaf.dtype)
                    if there:
                        column[there] = seen[leaf.name]
                    if leaf.name.rpartition(".")[2] == MASK:  # who does not act may do anything: nothing comes of it
                        column[[not moment.status[self._agents[agent]] & Presence.ACTS for moment in moments]] = 1
                    columns[leaf.name] = column
        except EnvironmentFault as error:
            raise environment_fault(self.name, call, error) from error
        columns[STATUS] = np.stack([moment.status for moment in moments])
        columns[REWARDS] = np.stack([moment.reward for moment in moments])
        if self._state is not None:
            columns |= {
                name: np.concatenate([_part(moment.state)[name] for moment in moments]) for name in _part(moments[0].state)
            }
        return columns

    def _read_state(self, copy: Any) -> Columns:
        assert self._state is not None, "asked only where there is a state"
        return self._state.read_each([np.array(copy.state())])

    def _close_copies(self) -> None:
        for copy in self._copies:
            copy.close()


class _Moment:
    """What the agents of one copy see after a call."""

    __slots__ = ("observations", "reward", "state", "status")

    def __init__(self, *, agents: int, observations: Mapping[str, Any], state: Columns | None) -> None:
        self.observations = observations
        self.state = state
        self.status = np.zeros(agents, np.uint8)
        self.reward = np.zeros(agents, np.float32)


def _part(state: Columns | None) -> Columns:
    assert state is not None, "every moment of an environment with a state has one"
    return state


def _names(environment: Parallel, name: str) -> dict[str, int]:
    """Places of all agents by their names."""
    agents = list(environment.possible_agents)
    for agent in agents:
        if not isinstance(agent, str) or not agent or "." in agent or agent == ALL:
            raise ConfigError(
                f"environment {name!r}: an agent cannot be called {agent!r}; its name is part of column names: use a string "
                f"without dots, other than {ALL!r}"
            )
    if not agents:
        raise ConfigError(f"environment {name!r}: possible_agents is empty; it must list every agent that may ever be there")
    return {agent: index for index, agent in enumerate(agents)}


def _leaves_of_all(agents: int) -> tuple[Leaf, ...]:
    unbounded = (float("inf"),) * agents
    return (
        Leaf(name=STATUS, kind="box", dtype="|u1", shape=(agents,), low=(0.0,) * agents, high=(15.0,) * agents),
        Leaf(name=REWARDS, kind="box", dtype="<f4", shape=(agents,), low=tuple(-bound for bound in unbounded), high=unbounded),
    )
