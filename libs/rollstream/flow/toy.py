"""Toy sides: actors, edges, tables and a learner in memory, to try a flow or a step without environments, networks and processes.

Everything is deterministic. Environments count their own steps: observation = steps since reset, reward = 1, value = 0.5.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.clock import Clock, FakeClock
from rollstream.errors import DeadlineExceeded, NonFiniteError
from rollstream.flow.sides import EdgeSource, StoreResult
from rollstream.metrics import Counters
from rollstream.seeding import child_generator
from rollstream.spaces import Batch, Column, Columns, Episodes, Flag, Rollout, RowSpec

__all__ = ["TOY_ROWS", "ToyActor", "ToyEdge", "ToyLearner", "ToyTable"]

NOT_RECORDED: AbstractContextManager[None] = nullcontext()
TOY_ROWS = RowSpec(
    (
        Column(name="observation", dtype="<f4", shape=(1,)),
        Column(name="action", dtype="<i8"),
        Column(name="reward", dtype="<f4"),
        Column(name="log_prob", dtype="<f4"),
        Column(name="value", dtype="<f4"),
    )
)


@dataclass(slots=True, eq=False)
class ToyTable:
    """A table of item numbers that can be sampled from `min_items` on; `max_items` unsampled ones block the writer."""

    min_items: int = 1
    max_items: int = 1_000_000
    items: int = 0
    sampled: int = 0
    priorities: dict[int, float] = field(default_factory=dict)


@dataclass(slots=True, eq=False, kw_only=True)
class ToyActor:
    """An `ActorSide` whose environments have episodes of `episode_steps` steps that terminate."""

    actor: str = "actor-0"
    clock: Clock = field(default_factory=FakeClock)
    environments: int = 2
    episode_steps: int = 3
    version: Callable[[], int] = lambda: 1
    tables: Mapping[str, ToyTable] = field(default_factory=dict)
    steps_since_reset: int = 0
    episodes: int = 0
    agent: Any = None
    weights: Mapping[str, npt.NDArray[Any]] = field(default_factory=lambda: {"w": np.zeros(2, np.float32)})
    given: Mapping[str, npt.NDArray[Any]] | None = None
    acted_version: int | None = None
    generators: dict[str, np.random.Generator] = field(default_factory=dict)
    peers: Any = None
    options: dict[str, Any] = field(default_factory=dict)

    def pull(self) -> int:
        """The newest version; `weights` act again."""
        self.given, self.acted_version = None, None
        return self.version()

    def tensors(self) -> Mapping[str, npt.NDArray[Any]]:
        """`weights`, or what was given since the last pull."""
        return self.weights if self.given is None else self.given

    def act_with(self, tensors: Mapping[str, npt.NDArray[Any]], *, version: int | None = None) -> None:
        """Remember them; nothing that the environments do depends on them."""
        for name, tensor in tensors.items():
            if not np.isfinite(tensor).all():
                raise NonFiniteError(f"parameter {name} is not finite; weights refused")
        self.given = tensors
        self.acted_version = version if version is not None else self.acted_version

    def generator(self, name: str) -> np.random.Generator:
        """Seeded by the actor's id and `name`."""
        return self.generators.setdefault(name, child_generator(0, self.actor, name))

    def restart(self, options: Mapping[str, Any] | None = None) -> None:
        """The environments count from 0 again; they remember the options and heed none."""
        self.steps_since_reset = 0
        self.options = {**self.options, **(options or {})}

    def collect(self, *, steps: int, pull: bool = True) -> Rollout:
        """`steps` steps of each environment; all are in step with each other."""
        if pull:
            self.pull()
        version = self.version() if self.acted_version is None else self.acted_version
        rows: list[tuple[Any, ...]] = []
        returns: list[float] = []
        for _ in range(steps):
            first = Flag.FIRST if self.steps_since_reset == 0 else Flag(0)
            rows.append((int(first), version, [self.steps_since_reset], 0, 1.0, -0.7, 0.5))
            self.steps_since_reset += 1
            if self.steps_since_reset == self.episode_steps:
                rows.append((int(Flag.FINAL | Flag.TERMINATED), version, [self.steps_since_reset], 0, 0.0, 0.0, 0.5))
                returns.append(float(self.episode_steps))
                self.steps_since_reset = 0
        one = np.array(rows, TOY_ROWS.dtype)
        self.episodes += len(returns) * self.environments
        return Rollout(
            rows=np.tile(one, self.environments),
            offsets=np.arange(self.environments + 1) * len(one),
            next_observation={"observation": np.full((self.environments, 1), self.steps_since_reset, np.float32)},
            version=version,
            env_steps=steps * self.environments,
            episodes=Episodes(
                returns=np.repeat(np.array(returns, np.float64), self.environments),
                lengths=np.full(len(returns) * self.environments, self.episode_steps, np.int64),
            ),
        )

    def values(self, observation: Columns, *, policy: str = "") -> npt.NDArray[np.float32]:
        """0.5 for each environment."""
        return np.full(len(observation["observation"]), 0.5, np.float32)

    def store(self, table: str, rule: Any, rollout: Rollout) -> StoreResult:
        """One item for each environment step."""
        self.tables[table].items += rollout.env_steps
        return StoreResult(items=rollout.env_steps, rows=len(rollout.rows), waited_s=0.0)

    def can_store(self, table: str) -> bool:
        """While the table has room."""
        return self.tables[table].items - self.tables[table].sampled < self.tables[table].max_items


class ToyEdge:
    """An edge between threads: `send` waits for credit, `next` for a message."""

    def __init__(self, *, in_flight: int) -> None:
        self._in_flight = in_flight
        self._messages: deque[Batch] = deque()
        self._unused: dict[str, int] = {}
        self._live: set[str] = set()
        self._changed = threading.Condition()
        self.acknowledged: list[tuple[str, int]] = []

    def join(self, actor: str) -> None:
        """`actor` produces for this edge from now on."""
        with self._changed:
            self._live.add(actor)
            self._unused.setdefault(actor, 0)
            self._changed.notify_all()

    def leave(self, actor: str) -> None:
        """`actor` is dead."""
        with self._changed:
            self._live.discard(actor)
            self._changed.notify_all()

    def send(self, batch: Batch, *, deadline_s: float = 10.0) -> bool:
        """Put a message on the edge once there is credit for it; False when the actor has left meanwhile."""
        with self._changed:
            has_credit = self._changed.wait_for(
                lambda: self._unused.get(batch.actor, 0) < self._in_flight or batch.actor not in self._live, deadline_s
            )
            if not has_credit:
                raise DeadlineExceeded(f"{batch.actor} got no credit from the learner within {deadline_s} s")
            if batch.actor not in self._live:
                return False
            self._unused[batch.actor] += 1
            self._messages.append(batch)
            self._changed.notify_all()
            return True

    def wait_for_credit(self, actor: str, *, deadline_s: float = 10.0) -> bool:
        """Wait until `actor` may send; False when it left or the deadline passed."""
        with self._changed:
            self._changed.wait_for(lambda: self._unused.get(actor, 0) < self._in_flight or actor not in self._live, deadline_s)
            return actor in self._live and self._unused[actor] < self._in_flight

    def next(self, timeout_s: float) -> Batch | None:
        """The oldest message."""
        with self._changed:
            self._changed.wait_for(lambda: bool(self._messages), min(timeout_s, 0.05))
            return self._messages.popleft() if self._messages else None

    def at_hand(self) -> Batch | None:
        """The oldest message, if there is one."""
        with self._changed:
            return self._messages.popleft() if self._messages else None

    def ack(self, *batches: Batch) -> None:
        """Their actors may send again."""
        with self._changed:
            for batch in batches:
                self._unused[batch.actor] -= 1
                self.acknowledged.append((batch.actor, batch.sequence))
            self._changed.notify_all()

    def live_actors(self) -> set[str]:
        """Those that joined and did not leave."""
        with self._changed:
            return set(self._live)

    def ready(self) -> bool:
        """Whether a message is there."""
        with self._changed:
            return bool(self._messages)


@dataclass(slots=True, eq=False, kw_only=True)
class ToyLearner:
    """A `LearnerSide` that counts what it is asked for. `edges` makes or finds the learner's end of an edge."""

    edges: Callable[[str, int], EdgeSource] | None = None
    clock: Clock = field(default_factory=FakeClock)
    counters: Counters = field(default_factory=Counters)
    stop: threading.Event = field(default_factory=threading.Event)
    tables: Mapping[str, ToyTable] = field(default_factory=dict)
    updates_each: int = 1
    learned: list[Batch] = field(default_factory=list)
    published: int = 1
    updated: int = 0
    synced: int = 0

    def version(self) -> int:
        return self.published

    def updates(self, *, policy: str = "") -> int:
        return self.updated

    def messages(self, edge: str, *, in_flight: int) -> EdgeSource:
        assert self.edges is not None
        return self.edges(edge, in_flight)

    def learn(self, batch: Batch, *, policy: str = "") -> Batch:
        """Remember the batch, count `updates_each` updates."""
        self.learned.append(batch)
        self.updated += self.updates_each
        columns = {**batch.columns, "td_error": np.full(batch.rows, -2.0, np.float32)}
        return replace(batch, columns=columns, metrics={**batch.metrics, "loss": float(self.updated)})

    def publish(self) -> int:
        self.published += 1
        return self.published

    def sync_target(self, *, policy: str = "") -> None:
        self.synced += 1

    def evaluate(self, *, episodes: int) -> Episodes:
        """Episodes whose return is the number of updates."""
        return Episodes(returns=np.full(episodes, float(self.updates())), lengths=np.ones(episodes, np.int64))

    def sample(self, table: str, *, batch_items: int, deadline_s: float) -> Batch:
        """The newest item numbers."""
        if not self.can_sample(table, batch_items=batch_items):
            self.stop.wait(min(deadline_s, 0.01))
            raise DeadlineExceeded(
                f"table {table} has {self.tables[table].items} items, {self.tables[table].min_items} are needed"
            )
        self.tables[table].sampled += batch_items
        keys = self.tables[table].items - 1 - np.arange(batch_items, dtype=np.uint64) % max(1, self.tables[table].items)
        return Batch(columns={"key": keys.astype(np.uint64)}, env_steps=0, version=self.published, newest_version=self.published)

    def can_sample(self, table: str, *, batch_items: int) -> bool:
        return self.tables[table].items >= self.tables[table].min_items

    def update_priorities(self, table: str, keys: npt.NDArray[Any], priorities: npt.NDArray[Any]) -> None:
        for key, priority in zip(keys.tolist(), priorities.tolist(), strict=True):
            self.tables[table].priorities[key] = priority

    def waits(self, who: str, what: str) -> AbstractContextManager[None]:
        """Remembered by nobody."""
        return NOT_RECORDED
