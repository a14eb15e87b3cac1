"""The learner's side of a flow: edges, tables, the agent, and weights to publish."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from rollstream.clock import Clock
from rollstream.errors import ConfigError
from rollstream.flow.sides import EdgeSource
from rollstream.learning.agent import LearningAgent
from rollstream.learning.policies import PolicyLearners, learner_of
from rollstream.metrics import Counters
from rollstream.spaces import Batch, Episodes

__all__ = ["Evaluator", "LearnerProcess", "TableSource", "WaitRecorder", "WeightSink"]


class WeightSink(Protocol):
    """Where weights are published."""

    def publish(self, version: int, tensors: Mapping[str, npt.NDArray[np.float32]]) -> Any: ...


class TableSource(Protocol):
    """A replay table, seen by the learner (`rollstream.replay.TableClient`).

    Attributes:
        learner_version: newest weights that the learner published; the lag of samples is measured by it.
    """

    learner_version: int

    def sample(self, *, batch_items: int, deadline_s: float) -> Any:
        """A `SampledItems` that also has `keys`; raises `DeadlineExceeded`."""
        ...

    def can_sample(self, *, batch_items: int) -> bool: ...

    def update_priorities(self, keys: npt.NDArray[Any], priorities: npt.NDArray[Any]) -> Any: ...


class WaitRecorder(Protocol):
    """Records who waits for whom (`rollstream.metrics.Waits`)."""

    def waiting(self, *, who: str, for_whom: str) -> AbstractContextManager[Any]: ...


class Evaluator(Protocol):
    """Plays greedy episodes (`rollstream.algorithms.evaluation.Evaluator`)."""

    def __call__(
        self, tensors: Mapping[str, npt.NDArray[np.float32]], *, version: int, episodes: int, number: int
    ) -> Episodes: ...


class LearnerProcess:
    """Implements `rollstream.flow.sides.LearnerSide` for one experiment.

    The flow's branches stand still while a checkpoint is made (`Runner`). One branch learns and publishes at a time; branches that
    learn different policies take turns.
    """

    def __init__(
        self,
        *,
        agent: LearningAgent,
        weights: WeightSink,
        counters: Counters,
        waits: WaitRecorder,
        clock: Clock,
        edge: Callable[[str, int], EdgeSource],
        tables: Mapping[str, TableSource],
        version: int,
        stop: threading.Event | None = None,
        evaluator: Evaluator | None = None,
    ) -> None:
        self.stop_event = stop or threading.Event()
        self.first_update_wall_s: float | None = None
        self._agent = agent
        self._weights = weights
        self._counters = counters
        self._waits = waits
        self._clock = clock
        self._edge = edge
        self._tables = tables
        self._version = version
        self._turn = threading.RLock()
        self._evaluator = evaluator

    @property
    def clock(self) -> Clock:
        return self._clock

    @property
    def counters(self) -> Counters:
        return self._counters

    @property
    def stop(self) -> threading.Event:
        return self.stop_event

    def version(self) -> int:
        return self._version

    def updates(self, *, policy: str = "") -> int:
        return self._counters.value("updates", reason=policy)

    def messages(self, edge: str, *, in_flight: int) -> EdgeSource:
        return self._edge(edge, in_flight)

    def learn(self, batch: Batch, *, policy: str = "") -> Batch:
        with self._turn:
            learned = learner_of(self._agent, policy).learn(batch, env_steps=self._env_steps())
        self._counters.add("updates", learned.updates, reason=policy)
        self._counters.add("updates_skipped", int(learned.metrics.get("skipped_updates", 0)))
        if self.first_update_wall_s is None:
            self.first_update_wall_s = self._clock.wall_s()
        return Batch(
            columns={**batch.columns, **learned.columns},
            env_steps=batch.env_steps,
            version=batch.version,
            newest_version=batch.newest_version,
            actor=batch.actor,
            sequence=batch.sequence,
            episodes=batch.episodes,
            metrics={**batch.metrics, **_named(learned.metrics, policy)},
        )

    def publish(self) -> int:
        with self._turn:
            self._weights.publish(self._version + 1, self.tensors())
            self._version += 1
        self._counters.add("publications")
        return self._version

    def tensors(self) -> Mapping[str, npt.NDArray[np.float32]]:
        """What would be published now."""
        return self._agent.tensors(env_steps=self._env_steps())

    def sync_target(self, *, policy: str = "") -> None:
        with self._turn:
            learner_of(self._agent, policy).sync_target()

    def evaluate(self, *, episodes: int) -> Episodes:
        if self._evaluator is None:
            raise ConfigError(
                "this learner was given no evaluator, so its flow cannot evaluate; pass LearnerProcess(evaluator=...)"
            )
        return self._evaluator(self.tensors(), version=self._version, episodes=episodes, number=self.updates())

    def sample(self, table: str, *, batch_items: int, deadline_s: float) -> Batch:
        source = self._tables[table]
        source.learner_version = self._version
        sample = source.sample(batch_items=batch_items, deadline_s=deadline_s)
        self._counters.add("items_sampled", len(sample.keys))
        owner = self._agent.tables.get(table, "") if isinstance(self._agent, PolicyLearners) else ""
        columns = learner_of(self._agent, owner).columns(sample, env_steps=self._env_steps())
        acted = sample.rows["version"][:, sample.core_start]
        return Batch(
            columns={**columns, "key": sample.keys},
            env_steps=0,
            version=int(acted.min()),
            newest_version=int(acted.max()),
        )

    def can_sample(self, table: str, *, batch_items: int) -> bool:
        return self._tables[table].can_sample(batch_items=batch_items)

    def update_priorities(self, table: str, keys: npt.NDArray[Any], priorities: npt.NDArray[Any]) -> None:
        self._tables[table].update_priorities(keys, priorities)

    def waits(self, who: str, what: str) -> AbstractContextManager[Any]:
        return self._waits.waiting(who=who, for_whom=what)

    def _env_steps(self) -> int:
        return self._counters.value("env_steps_sampled")


def _named(metrics: Mapping[str, float], policy: str) -> Mapping[str, float]:
    """Metrics under the name of their policy, so that those of several stand side by side."""
    return {f"{policy}.{name}": value for name, value in metrics.items()} if policy else metrics
