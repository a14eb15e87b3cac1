"""The actor's side of a flow: environments, the newest policy, and writers of tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from rollstream.acting.league import League
from rollstream.acting.policy import SCALAR_PREFIX, Policy, Weights, WeightSource
from rollstream.acting.policy_set import PolicySet
from rollstream.clock import Clock
from rollstream.errors import ConfigError
from rollstream.flow.sides import Peers, StoreResult
from rollstream.seeding import child_generator
from rollstream.spaces import Columns, Rollout

__all__ = ["ActorProcess", "RolloutSource", "TableSink"]


class RolloutSource(Protocol):
    """Steps environments (`rollstream.envs.Collector`)."""

    def collect(self, steps: int, *, version: int) -> Rollout: ...

    def restart(self, options: Mapping[str, Any] | None = None) -> None: ...


class TableSink(Protocol):
    """Writes rollouts to a replay table (`rollstream.replay.TableWriter`)."""

    def append(self, rollout: Rollout) -> Any:
        """Write; returns something with `items`, `rows` and `waited_s`."""
        ...

    def has_room(self) -> bool:
        """Whether `append` would not have to wait now."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _Given:
    """Weights that a step of the flow gave."""

    version: int
    tensors: Mapping[str, npt.NDArray[Any]]


class ActorProcess:
    """Implements `rollstream.flow.sides.ActorSide` for one actor that serves one experiment.

    Args:
        actor: its id, which stands in messages and errors.
        agent: the algorithm, for steps that compute with it; None: there are none.
        seed: this actor's own; generators derive from it.
        peers: the way to the other actors, for steps that compute together.
        sink: opens the writer of a table, once per table and item rule, for so many environments (agents that a policy plays count
            as one each).
    """

    def __init__(
        self,
        *,
        actor: str,
        clock: Clock,
        source: RolloutSource,
        policy: Policy | PolicySet | League,
        weights: WeightSource,
        sink: Callable[[str, Any, int], TableSink],
        agent: Any = None,
        seed: int = 0,
        peers: Peers | None = None,
    ) -> None:
        self.peers = peers
        self._actor = actor
        self._clock = clock
        self._source = source
        self._policy = policy
        self._weights = weights
        self._sink = sink
        self._sinks: dict[str, TableSink] = {}
        self._agent = agent
        self._seed = seed
        self._generators: dict[str, np.random.Generator] = {}
        self._pulled: Weights | None = None

    @property
    def actor(self) -> str:
        return self._actor

    @property
    def clock(self) -> Clock:
        return self._clock

    @property
    def version(self) -> int:
        """Weights that act; 0 before the first were pulled."""
        return self._policy.version

    @property
    def agent(self) -> Any:
        if self._agent is None:
            raise ConfigError("this actor was given no agent, so its steps cannot compute with one; pass ActorProcess(agent=...)")
        return self._agent

    def pull(self) -> int:
        newer = self._weights.fetch_if_newer(0 if self._pulled is None else self._pulled.version)
        if newer is not None:
            self._policy.load(newer)
            self._pulled = newer
        elif self._pulled is not None and self._policy.tensors is not self._pulled.tensors:
            self._policy.load(self._pulled)
        return self._policy.version

    def tensors(self) -> Mapping[str, npt.NDArray[Any]]:
        return self._policy.tensors

    def act_with(self, tensors: Mapping[str, npt.NDArray[Any]], *, version: int | None = None) -> None:
        scalars = {name: tensor for name, tensor in self._policy.tensors.items() if name.startswith(SCALAR_PREFIX)}
        given = self._policy.version if version is None else version
        self._policy.load(_Given(version=given, tensors={**scalars, **tensors}))

    def generator(self, name: str) -> np.random.Generator:
        if name not in self._generators:
            self._generators[name] = child_generator(self._seed, name)
        return self._generators[name]

    def collect(self, *, steps: int, pull: bool = True) -> Rollout:
        if pull:
            self.pull()
        return self._source.collect(steps, version=self._policy.version)

    def restart(self, options: Mapping[str, Any] | None = None) -> None:
        self._source.restart(options)

    def values(self, observation: Columns, *, policy: str = "") -> npt.NDArray[np.float32]:
        if isinstance(self._policy, Policy):
            return self._policy.values(observation)
        return self._policy.values(observation, policy=policy)

    def store(self, table: str, rule: Any, rollout: Rollout) -> StoreResult:
        if table not in self._sinks:
            self._sinks[table] = self._sink(table, rule, len(rollout.offsets) - 1)
        written = self._sinks[table].append(rollout)
        return StoreResult(items=written.items, rows=written.rows, waited_s=written.waited_s)

    def can_store(self, table: str) -> bool:
        return table not in self._sinks or self._sinks[table].has_room()
