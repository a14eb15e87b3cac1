"""The actor's side of a flow: environments, the newest policy, and writers of tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from rollstream.acting.policy import Policy, WeightSource
from rollstream.clock import Clock
from rollstream.flow.sides import StoreResult
from rollstream.spaces import Columns, Rollout

__all__ = ["ActorProcess", "RolloutSource", "TableSink"]


class RolloutSource(Protocol):
    """Steps environments (`rollstream.envs.Collector`)."""

    def collect(self, steps: int, *, version: int) -> Rollout: ...


class TableSink(Protocol):
    """Writes rollouts to a replay table (`rollstream.replay.TableWriter`)."""

    def append(self, rollout: Rollout) -> Any:
        """Write; returns something with `items`, `rows` and `waited_s`."""
        ...

    def has_room(self) -> bool:
        """Whether `append` would not have to wait now."""
        ...


class ActorProcess:
    """Implements `rollstream.flow.sides.ActorSide` for one actor that serves one experiment.

    Args:
        actor: its id, which stands in messages and errors.
        sink: opens the writer of a table, once per table and item rule.
    """

    def __init__(
        self,
        *,
        actor: str,
        clock: Clock,
        source: RolloutSource,
        policy: Policy,
        weights: WeightSource,
        sink: Callable[[str, Any], TableSink],
    ) -> None:
        self._actor = actor
        self._clock = clock
        self._source = source
        self._policy = policy
        self._weights = weights
        self._sink = sink
        self._sinks: dict[str, TableSink] = {}

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

    def pull(self) -> bool:
        """Act with the newest weights from now on; False when there are none at all yet."""
        newer = self._weights.fetch_if_newer(self._policy.version)
        if newer is not None:
            self._policy.load(newer)
        return self._policy.version > 0

    def collect(self, *, steps: int) -> Rollout:
        self.pull()
        return self._source.collect(steps, version=self._policy.version)

    def values(self, observation: Columns) -> npt.NDArray[np.float32]:
        return self._policy.values(observation)

    def store(self, table: str, rule: Any, rollout: Rollout) -> StoreResult:
        if table not in self._sinks:
            self._sinks[table] = self._sink(table, rule)
        written = self._sinks[table].append(rollout)
        return StoreResult(items=written.items, rows=written.rows, waited_s=written.waited_s)

    def can_store(self, table: str) -> bool:
        return table not in self._sinks or self._sinks[table].has_room()
