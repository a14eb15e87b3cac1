"""The learner's side counts updates, publishes under growing versions and passes batches on whole."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.clock import FakeClock
from rollstream.learning import Learned, LearnerProcess
from rollstream.metrics import Counters
from rollstream.spaces import Batch, Episodes


class CountingAgent:
    """Learns nothing, remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.targets = 0

    def learn(self, batch: Batch, *, env_steps: int) -> Learned:
        self.asked.append(env_steps)
        return Learned(updates=3, metrics={"loss": 0.5}, columns={"td_error": np.ones(batch.rows, np.float32)})

    def columns(self, sample: Any, *, env_steps: int) -> dict[str, npt.NDArray[Any]]:
        return {"reward": sample.rows["reward"][:, 0]}

    def tensors(self, *, env_steps: int) -> Mapping[str, npt.NDArray[np.float32]]:
        return {"w": np.full(2, env_steps, np.float32)}

    def sync_target(self) -> None:
        self.targets += 1

    def state(self) -> dict[str, Any]:
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Nothing to restore."""


class Published:
    def __init__(self) -> None:
        self.versions: list[int] = []

    def publish(self, version: int, tensors: Mapping[str, npt.NDArray[np.float32]]) -> None:
        self.versions.append(version)


class NoWaits:
    @contextlib.contextmanager
    def waiting(self, *, who: str, for_whom: str) -> Iterator[None]:
        yield


class OneTable:
    """A table with one sample to give."""

    def __init__(self) -> None:
        self.priorities: list[tuple[Any, Any]] = []
        self.learner_version = 0

    def sample(self, *, batch_items: int, deadline_s: float) -> Any:
        rows = np.zeros((batch_items, 2), [("version", "<u4"), ("reward", "<f4")])
        rows["version"][:, 0] = np.arange(batch_items) + 5
        return SimpleNamespace(keys=np.arange(batch_items, dtype=np.uint64), rows=rows, core_start=0)

    def can_sample(self, *, batch_items: int) -> bool:
        return batch_items < 10

    def update_priorities(self, keys: npt.NDArray[Any], priorities: npt.NDArray[Any]) -> None:
        self.priorities.append((keys, priorities))


def make_side(**more: Any) -> tuple[LearnerProcess, CountingAgent, Published, Counters, OneTable]:
    agent, published, counters, table = CountingAgent(), Published(), Counters(), OneTable()
    side = LearnerProcess(
        agent=agent,
        weights=published,
        counters=counters,
        waits=NoWaits(),
        clock=FakeClock(start_s=9.0),
        edge=lambda name, in_flight: None,  # type: ignore[arg-type, return-value]
        tables={"replay": table},
        version=7,
        **more,
    )
    return side, agent, published, counters, table


def test_learning_counts_updates_and_keeps_the_batch() -> None:
    side, agent, _, counters, _ = make_side()
    counters.add("env_steps_sampled", 40)
    batch = Batch(
        columns={"reward": np.zeros(4, np.float32)},
        env_steps=4,
        version=6,
        newest_version=7,
        actor="actor-1",
        sequence=3,
        episodes=Episodes(returns=np.ones(1), lengths=np.ones(1, np.int64)),
        metrics={"stored_items": 1.0},
    )
    learned = side.learn(batch)
    assert side.updates() == 3 and agent.asked == [40]
    assert learned.metrics == {"stored_items": 1.0, "loss": 0.5}
    assert (learned.env_steps, learned.version, learned.actor, learned.sequence, len(learned.episodes)) == (4, 6, "actor-1", 3, 1)
    assert set(learned.columns) == {"reward", "td_error"}
    assert side.first_update_wall_s == 9.0


def test_versions_go_on_from_where_they_were() -> None:
    side, _, published, counters, _ = make_side()
    assert [side.publish(), side.publish()] == [8, 9]
    assert published.versions == [8, 9] and side.version() == 9
    assert counters.value("publications") == 2


def test_samples_carry_their_keys_the_versions_that_acted_and_no_environment_steps() -> None:
    side, _, _, counters, table = make_side()
    side.publish()
    batch = side.sample("replay", batch_items=3, deadline_s=1.0)
    assert table.learner_version == side.version() > 0  # by which the table measures lag
    assert (batch.env_steps, batch.version, batch.newest_version) == (0, 5, 7)
    assert batch.columns["key"].tolist() == [0, 1, 2]
    assert counters.value("items_sampled") == 3
    side.update_priorities("replay", batch.columns["key"], np.ones(3))
    assert len(table.priorities) == 1
    assert side.can_sample("replay", batch_items=9) and not side.can_sample("replay", batch_items=10)
