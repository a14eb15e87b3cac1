"""select_policies: from rows that hold all agents to the rows of the agents of one policy, inside the actor.

    row t of a copy    | a: sees, does, status | b: ... |     status of row t + 1: a was paid 1 and has terminated
    rows of the policy | a sees, does, paid 1 | a FINAL TERMINATED | b ... |      copy by copy, agent by agent: each an "environment"

So everything that works on rollouts (advantages, tables, losses) works on those of one policy unchanged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.errors import ConfigError
from rollstream.flow.place import calling_place
from rollstream.flow.sides import ActorSide
from rollstream.flow.step import Bound, Step
from rollstream.spaces import AgentSpaces, Episodes, Flag, PolicyView, Presence, Rollout
from rollstream.spaces.agents import REWARDS, STATUS

__all__ = ["PolicyRows", "select_policies"]

ENDED = np.uint8(Presence.TERMINATED | Presence.TRUNCATED)
Array = npt.NDArray[Any]


def select_policies(policy: str) -> Step:
    """Keep the rows of the agents that `policy` plays. Each agent of each copy is one environment of the rollout that comes out.

    The rollout keeps the environment steps of the one that went in, for they were taken once for all agents; where several
    branches select from one source, the first accounts for them and the others for none. Its episodes are those of its agents.
    """
    if not policy:
        raise ConfigError(f"select_policies needs the name of a policy ({calling_place()})")
    return Step(
        name="select_policies",
        bind=_SelectPolicies(policy),
        where="actor",
        settings={"policy": policy},
        takes="rollout",
        gives="rollout",
    )


@dataclass(frozen=True, slots=True)
class _SelectPolicies:
    policy: str

    def __call__(self, side: ActorSide) -> Bound:
        return _BoundSelect(side, side.agent.view(self.policy)).selected


class _BoundSelect:
    def __init__(self, side: ActorSide, view: PolicyView) -> None:
        self._side = side
        self._rows = PolicyRows(view)
        self._has_value = "value" in (view.rows.dtype.names or ())

    def selected(self, rollout: Rollout) -> Rollout:
        """The rollout of the policy."""
        selected = self._rows.of(rollout)
        late = self._rows.ended_late
        if self._has_value and len(late):  # their last observations came after the last row, so nobody has valued them yet
            values = self._side.values(selected.next_observation, policy=selected.policy)
            environment = np.searchsorted(selected.offsets, late, side="right") - 1
            selected.rows["value"][late] = values[environment]
        return selected


class PolicyRows:
    """Cuts the rows of a policy's agents out of rollouts of one actor, in order.

    Attributes:
        ended_late: rows of the last rollout that were made of observations which came after its last row.
    """

    def __init__(self, view: PolicyView) -> None:
        self._view = view
        self._returns = np.zeros(0)
        self._lengths = np.zeros(0, np.int64)
        self.ended_late = np.zeros(0, np.int64)

    def of(self, rollout: Rollout) -> Rollout:
        """The agents' rollout."""
        moments = _Moments(rollout)
        agents = self._view.agents
        parts = [self._agent(moments, agent, place) for place, agent in enumerate(agents)]
        environment = np.concatenate([part.environment for part in parts])
        order = np.lexsort((np.concatenate([part.time for part in parts]), environment))
        rows = np.concatenate([part.rows for part in parts])[order]
        environments = len(agents) * moments.copies
        offsets = np.concatenate([[0], np.cumsum(np.bincount(environment, minlength=environments))])
        self.ended_late = np.flatnonzero(np.concatenate([part.late for part in parts])[order])
        counts = np.concatenate([part.counts for part in parts])[order]
        return Rollout(
            rows=rows,
            offsets=offsets,
            next_observation=_next_of(agents, rollout),
            version=rollout.version,
            env_steps=rollout.env_steps,
            episodes=self._episodes(rows, offsets, counts),
            policy=self._view.name,
        )

    def _agent(self, moments: _Moments, agent: AgentSpaces, place: int) -> _Part:
        joint, status, later = moments.rows, moments.status[:, agent.index], moments.status_after[:, agent.index]
        learns = joint[agent.joint("learns")] if self._view.drawn else np.ones(len(joint), np.uint8)
        plays = learns != 0
        acts = np.flatnonzero((status & Presence.ACTS != 0) & plays)
        ends = np.flatnonzero((status & ENDED != 0) & ~moments.begins & plays)
        late = acts[moments.is_last[acts] & (later[acts] & ENDED != 0)]
        rows = np.zeros(len(acts) + len(ends) + len(late), self._view.rows.dtype)
        acting, ending, after = np.split(rows, [len(acts), len(acts) + len(ends)])
        for name in self._view.rows.dtype.names or ():
            if name not in ("flags", "version", "reward"):
                column = joint[agent.joint(name)]
                acting[name] = column[acts]
                if not name.startswith("action"):
                    ending[name] = column[ends]
                if name.startswith("observation"):
                    after[name] = moments.next_observation[agent.joint(name)][moments.copy[late]]
        acting["reward"] = moments.reward_after[acts, agent.index]
        acting["flags"] = np.where(status[acts] & Presence.FIRST, Flag.FIRST, 0)
        ending["flags"], after["flags"] = _final(status[ends]), _final(later[late])
        source = np.concatenate([acts, ends, late])
        rows["version"] = joint["version"][source]
        return _Part(
            rows=rows,
            environment=moments.copy[source] * len(self._view.agents) + place,
            time=np.concatenate([2 * acts, 2 * ends, 2 * late + 1]),
            late=np.arange(len(rows)) >= len(acts) + len(ends),
            counts=learns[source] == 1,
        )

    def _episodes(self, rows: npt.NDArray[np.void], offsets: npt.NDArray[np.int64], counts: npt.NDArray[np.bool_]) -> Episodes:
        """Return and length of every agent's stay that ended and counts; those that go on are kept for the next rollout."""
        environments = len(offsets) - 1
        if len(self._returns) != environments:
            self._returns, self._lengths = np.zeros(environments), np.zeros(environments, np.int64)
        filled = offsets[:-1] < offsets[1:]
        fresh = np.zeros(environments, np.bool_)
        fresh[filled] = rows["flags"][offsets[:-1][filled]] & Flag.FIRST != 0
        self._returns[fresh], self._lengths[fresh] = 0.0, 0
        final = rows["flags"] & Flag.FINAL != 0
        paid = np.concatenate([[0.0], np.cumsum(rows["reward"], dtype=np.float64)])
        lived = np.concatenate([[0], np.cumsum(~final)])
        ends = np.flatnonzero(final)
        where = np.searchsorted(offsets, ends, side="right") - 1
        begins = np.maximum(offsets[where], np.concatenate([[0], ends[:-1] + 1]) if len(ends) else ends)
        carried = begins == offsets[where]
        returns = paid[ends] - paid[begins] + np.where(carried, self._returns[where], 0.0)
        lengths = lived[ends] - lived[begins] + np.where(carried, self._lengths[where], 0)
        rest = offsets[:-1].copy()
        rest[where] = ends + 1
        ended = np.zeros(environments, np.bool_)
        ended[where] = True
        self._returns = paid[offsets[1:]] - paid[rest] + np.where(ended, 0.0, self._returns)
        self._lengths = lived[offsets[1:]] - lived[rest] + np.where(ended, 0, self._lengths)
        told = counts[ends]
        return Episodes(returns=returns[told], lengths=lengths[told].astype(np.int64))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """Rows [R] of one agent in all copies, unsorted, with the environment that each belongs to and its place in time."""

    rows: npt.NDArray[np.void]
    environment: npt.NDArray[np.int64]
    time: npt.NDArray[np.int64]
    late: npt.NDArray[np.bool_]
    counts: npt.NDArray[np.bool_]


class _Moments:
    """A rollout of all agents, with what the row after each tells of it."""

    def __init__(self, rollout: Rollout) -> None:
        self.rows = rollout.rows
        self.next_observation = rollout.next_observation
        self.copies = len(rollout.offsets) - 1
        counts = np.diff(rollout.offsets)
        self.copy = np.repeat(np.arange(self.copies), counts)
        self.is_last, self.begins = np.zeros((2, len(self.rows)), np.bool_)
        last = rollout.offsets[1:][counts > 0] - 1
        self.is_last[last] = True
        self.begins[rollout.offsets[:-1][counts > 0]] = True
        self.status = self.rows[STATUS]
        self.status_after = self._after(STATUS, last)
        self.reward_after = self._after(REWARDS, last)

    def _after(self, name: str, last: npt.NDArray[np.int64]) -> Array:
        column = np.roll(self.rows[name], -1, axis=0)
        column[last] = self.next_observation[name][self.copy[last]]
        return column


def _final(status: Array) -> Array:
    flags = np.where(status & Presence.TERMINATED, Flag.TERMINATED, 0) | np.where(status & Presence.TRUNCATED, Flag.TRUNCATED, 0)
    return flags | Flag.FINAL


def _next_of(agents: tuple[AgentSpaces, ...], rollout: Rollout) -> dict[str, Array]:
    names = [leaf.name for leaf in agents[0].observation]
    found = {name: np.stack([rollout.next_observation[agent.joint(name)] for agent in agents], axis=1) for name in names}
    return {name: column.reshape(-1, *column.shape[2:]) for name, column in found.items()}
