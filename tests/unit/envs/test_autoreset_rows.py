"""Rows do not show how an environment was vectorized or when it resets: the heart of the collector."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from rollstream.clock import FakeClock
from rollstream.config import EnvironmentSpec
from rollstream.envs import Collector, environment_seeds, make_environment
from rollstream.spaces import Column, Columns, Flag, Rollout, row_spec

COUNTING = "rollstream.envs.toy:CountingEnvironment"
VECTOR = "rollstream.envs.toy:CountingVector"
ENVS = 3
EXTRAS = (Column(name="value", dtype="<f4"), Column(name="log_prob", dtype="<f4", shape=(2,)))


class CountingPolicy:
    """Acts by what it sees alone, so that every vectorization sees the same actions."""

    calls = 0

    def act(self, observation: Columns) -> Columns:
        self.calls += 1
        seen = observation["observation"]
        value = (1000 * seen[:, 1] + seen[:, 2]).astype(np.float32)
        return {"action": seen.sum(axis=1) % 4, "value": value, "log_prob": np.stack([value, -value], axis=1)}


def specs(end: str) -> dict[str, EnvironmentSpec]:
    kwargs: dict[str, Any] = {"end": end}
    found = {"plain": EnvironmentSpec(id=COUNTING, kwargs=kwargs)}
    for mode in ("next_step", "same_step", "disabled"):
        found[f"sync {mode}"] = EnvironmentSpec(id=COUNTING, kwargs=kwargs, vectorization="sync", autoreset=mode)  # type: ignore[arg-type]
    for mode in ("NextStep", "SameStep", "Disabled"):
        found[f"own {mode}"] = EnvironmentSpec(id=VECTOR, kwargs={**kwargs, "mode": mode})
    return found


def rollouts(spec: EnvironmentSpec, *, steps: list[int]) -> list[Rollout]:
    environment = make_environment(spec, envs=ENVS, seed=5, allow=["rollstream.envs.toy"])
    layout = row_spec(environment.observation_leaves, environment.action_leaves, EXTRAS)
    collector = Collector(environment, row_spec=layout, policy=CountingPolicy(), clock=FakeClock())
    found = [collector.collect(count, version=7) for count in steps]
    environment.close()
    return found


def rows_of(parts: list[Rollout], environment: int) -> npt.NDArray[np.void]:
    rows = np.concatenate([part.rows[part.offsets[environment] : part.offsets[environment + 1]] for part in parts])
    rows["observation"][:, 0] = environment  # seeds and indices alike
    return rows


def expected(environment: int, *, seed: int, end: str, rows: int) -> list[tuple[Any, ...]]:
    """The rows of one copy worked out by hand: (flags, observation, action, reward, value)."""
    found: list[tuple[Any, ...]] = []
    reason = {"terminated": Flag.TERMINATED, "truncated": Flag.TRUNCATED, "both": Flag.TERMINATED | Flag.TRUNCATED}[end]
    for episode in range(rows):
        length = (1, 3, 5)[episode % 3]
        for step in range(length):
            action = (seed + episode + step) % 4
            first = Flag.FIRST if step == 0 else Flag(0)
            found.append((first, [environment, episode, step], action, 100.0 * episode + 10.0 * step + action))
        found.append((Flag.FINAL | reason, [environment, episode, length], 0, 0.0))
    return found[:rows]


@pytest.mark.parametrize("end", ["terminated", "truncated", "both"])
@pytest.mark.parametrize("steps", [[40], [1] * 40, [2, 7, 1, 1, 13, 5, 11], [4] * 10])
@pytest.mark.parametrize("vectorization", list(specs("terminated")))
def test_rows_are_those_worked_out_by_hand(vectorization: str, steps: list[int], end: str) -> None:
    parts = rollouts(specs(end)[vectorization], steps=steps)
    own = vectorization.startswith("own")
    seeds = list(range(ENVS)) if own else environment_seeds(5, envs=ENVS)
    for environment in range(ENVS):
        rows = rows_of(parts, environment)
        known = expected(environment, seed=seeds[environment], end=end, rows=len(rows))
        assert rows["flags"].tolist() == [int(row[0]) for row in known]
        assert rows["observation"].tolist() == [row[1] for row in known]
        assert rows["action"].tolist() == [row[2] for row in known]
        assert rows["reward"].tolist() == [row[3] for row in known]
        assert rows["value"].tolist() == [1000.0 * row[1][1] + row[1][2] for row in known]
        assert (rows["log_prob"] == np.stack([rows["value"], -rows["value"]], axis=1)).all()
        assert (rows["version"] == 7).all()


def row_bytes(parts: list[Rollout], *, rows: int) -> list[bytes]:
    """The multiset of the first `rows` rows of each environment."""
    return sorted(row.tobytes() for environment in range(ENVS) for row in rows_of(parts, environment)[:rows])


@pytest.mark.parametrize("end", ["terminated", "truncated", "both"])
def test_every_autoreset_mode_gives_the_same_multiset_of_rows(end: str) -> None:
    found = {
        name: row_bytes(rollouts(spec, steps=[9, 8, 7, 16]), rows=38)
        for name, spec in specs(end).items()
        if not name.startswith("own")  # their first observations carry an index instead of a seed, hence other actions
    }
    own = {
        name: row_bytes(rollouts(spec, steps=[9, 8, 7, 16]), rows=38)
        for name, spec in specs(end).items()
        if name.startswith("own")
    }
    assert len({tuple(rows) for rows in found.values()}) == 1
    assert len({tuple(rows) for rows in own.values()}) == 1


@pytest.mark.parametrize("vectorization", list(specs("terminated")))
def test_a_rollout_ends_with_the_final_row_of_an_episode_that_ended_in_it(vectorization: str) -> None:
    for part in rollouts(specs("terminated")[vectorization], steps=[1] * 12):
        for environment in range(ENVS):
            rows = part.rows[part.offsets[environment] : part.offsets[environment + 1]]
            ended = [row for row in rows if row["flags"] & Flag.FINAL]
            if len(rows) and not rows[-1]["flags"] & Flag.FINAL:
                assert part.next_observation["observation"][environment, 2] == rows[-1]["observation"][2] + 1
            assert len(ended) <= 1


@pytest.mark.parametrize("vectorization", list(specs("terminated")))
def test_environment_steps_and_episodes_leave_out_resets(vectorization: str) -> None:
    parts = rollouts(specs("terminated")[vectorization], steps=[5, 1, 1, 20])
    rows = np.concatenate([part.rows for part in parts])
    final = (rows["flags"] & Flag.FINAL) != 0
    assert sum(part.env_steps for part in parts) == (~final).sum()
    lengths = np.concatenate([part.episodes.lengths for part in parts])
    returns = np.concatenate([part.episodes.returns for part in parts])
    assert sorted(lengths) == sorted(rows["observation"][final][:, 2])
    known = []
    for environment in range(ENVS):
        own = rows_of(parts, environment)
        ends = np.flatnonzero(own["flags"] & Flag.FINAL)
        starts = [0, *(ends[:-1] + 1)]
        known += [float(own["reward"][start:end].sum()) for start, end in zip(starts, ends, strict=True)]
    assert sorted(returns) == sorted(known)


def test_episodes_come_in_order_of_time() -> None:
    (part,) = rollouts(specs("terminated")["plain"], steps=[9])
    assert part.episodes.lengths.tolist() == [1] * ENVS + [3] * ENVS + [5] * ENVS


def test_final_observations_cost_no_call_of_the_policy_when_nothing_is_asked_about_them() -> None:
    environment = make_environment(specs("terminated")["plain"], envs=2, seed=5, allow=["rollstream.envs.toy"])
    policy = CountingPolicy()
    layout = row_spec(environment.observation_leaves, environment.action_leaves)
    collector = Collector(environment, row_spec=layout, policy=policy, clock=FakeClock())
    collector.collect(10, version=1)
    assert policy.calls == 10
