"""advantages: numbers worked by hand, episode ends, and what the batch holds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rollstream.errors import SchemaMismatch
from rollstream.flow import advantages
from rollstream.flow.steps.advantages import rollout_advantages
from rollstream.flow.toy import TOY_ROWS, ToyActor
from rollstream.spaces import Episodes, Flag, Rollout

ENDED = int(Flag.FINAL | Flag.TERMINATED)
CUT = int(Flag.FINAL | Flag.TRUNCATED)
BOTH = int(Flag.FINAL | Flag.TERMINATED | Flag.TRUNCATED)


def rollout_of(*environments: list[tuple[int, float, float]]) -> Rollout:
    """A rollout from (flags, reward, value) of each row."""
    rows = [
        (flags, 7, [index], index % 2, reward, -0.5, value)
        for environment in environments
        for index, (flags, reward, value) in enumerate(environment)
    ]
    packed = np.array(rows, TOY_ROWS.dtype)
    counts = [len(environment) for environment in environments]
    return Rollout(
        rows=packed,
        offsets=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        next_observation={"observation": np.zeros((len(environments), 1), np.float32)},
        version=7,
        env_steps=int(((packed["flags"] & Flag.FINAL) == 0).sum()),
        episodes=Episodes(),
    )


def estimate(rollout: Rollout, bootstrap: list[float]) -> list[float]:
    estimated = rollout_advantages(rollout, np.array(bootstrap, np.float32), discount=0.5, gae_lambda=0.5)
    return estimated[(rollout.rows["flags"] & Flag.FINAL) == 0].tolist()  # type: ignore[no-any-return]


def test_nothing_is_bootstrapped_after_a_terminated_episode() -> None:
    rollout = rollout_of([(1, 1.0, 2.0), (0, 3.0, 4.0), (ENDED, 0.0, 100.0), (1, 5.0, 6.0)])
    # row 3: 5 + 0.5*8 - 6 = 3    row 1: 3 + 0 - 4 = -1    row 0: 1 + 0.5*4 - 2 + 0.25*(-1) = 0.75
    assert estimate(rollout, [8.0]) == [0.75, -1.0, 3.0]


def test_a_truncated_episode_is_bootstrapped_from_the_value_of_its_final_row() -> None:
    rollout = rollout_of([(1, 1.0, 2.0), (0, 1.0, 4.0), (CUT, 0.0, 10.0)])
    # row 1: 1 + 0.5*10 - 4 = 2    row 0: 1 + 0.5*4 - 2 + 0.25*2 = 1.5; the bootstrap value is of the next episode
    assert estimate(rollout, [1000.0]) == [1.5, 2.0]


def test_terminated_wins_when_an_episode_was_terminated_and_truncated() -> None:
    rollout = rollout_of([(1, 1.0, 2.0), (BOTH, 0.0, 10.0), (1, 1.0, 0.0)])
    assert estimate(rollout, [0.0]) == [-1.0, 1.0]


def test_environments_do_not_leak_into_each_other() -> None:
    alone = [(1, 1.0, 2.0), (0, 3.0, 4.0)]
    other = [(0, 9.0, 1.0), (CUT, 0.0, 5.0), (1, 9.0, 1.0)]
    together = estimate(rollout_of(alone, other, alone), [8.0, 3.0, 8.0])
    assert together == [
        *estimate(rollout_of(alone), [8.0]),
        *estimate(rollout_of(other), [3.0]),
        *estimate(rollout_of(alone), [8.0]),
    ]


def test_an_environment_without_rows_is_passed_over() -> None:
    alone = [(1, 1.0, 2.0), (0, 3.0, 4.0)]
    assert estimate(rollout_of([], alone, []), [1.0, 8.0, 1.0]) == estimate(rollout_of(alone), [8.0])


def test_lambda_one_gives_the_discounted_return() -> None:
    rollout = rollout_of([(1, 1.0, 3.0), (0, 1.0, 5.0), (0, 1.0, 7.0), (ENDED, 0.0, 0.0)])
    estimated = rollout_advantages(rollout, np.zeros(1, np.float32), discount=0.5, gae_lambda=1.0)
    assert (estimated[:3] + rollout.rows["value"][:3]).tolist() == [1.75, 1.5, 1.0]


def test_the_batch_holds_one_row_for_each_environment_step_and_no_final_rows() -> None:
    side = ToyActor(actor="a", environments=2, episode_steps=3, version=lambda: 4)
    rollout = side.collect(steps=4)
    batch = advantages(discount=0.9, gae_lambda=0.8).bind(side)(rollout)
    assert set(batch.columns) == {"observation", "action", "log_prob", "advantage", "return"}
    assert batch.rows == batch.env_steps == 8
    assert batch.columns["observation"][:, 0].tolist() == [0, 1, 2, 0] * 2
    assert batch.columns["advantage"].dtype == batch.columns["return"].dtype == np.float32
    assert all(column.flags.c_contiguous for column in batch.columns.values())
    assert (batch.version, batch.newest_version, batch.actor, len(batch.episodes)) == (4, 4, "a", 2)
    assert np.allclose(batch.columns["return"] - batch.columns["advantage"], 0.5)


def test_nested_observations_and_actions_are_kept_by_their_dotted_names() -> None:
    dtype: Any = [
        ("flags", "u1"),
        ("version", "<u4"),
        ("observation.a", "<f4", (2,)),
        ("observation.b", "u1"),
        ("action.x", "<i8"),
        ("reward", "<f4"),
        ("log_prob", "<f4"),
        ("value", "<f4"),
    ]
    rollout = Rollout(
        rows=np.zeros(3, dtype),
        offsets=np.array([0, 3]),
        next_observation={"observation": np.zeros((1, 1), np.float32)},
        version=1,
        env_steps=3,
        episodes=Episodes(),
    )
    batch = advantages(discount=0.9, gae_lambda=0.8).bind(ToyActor())(rollout)
    assert {"observation.a", "observation.b", "action.x"} <= set(batch.columns)


def test_rows_of_a_policy_that_remembers_say_what_they_follow() -> None:
    dtype: Any = [("flags", "u1"), ("version", "<u4"), ("observation", "<f4"), ("action", "<i8"), ("reward", "<f4")]
    dtype += [("log_prob", "<f4"), ("value", "<f4"), ("latent.action", "<f4"), ("recurrent.torso", "<f4", (2,))]
    rows = np.zeros(7, dtype)
    rows["flags"] = [0, ENDED, Flag.FIRST, 0, ENDED, Flag.FIRST, 0]  # the second environment has rows 4 to 6
    rollout = Rollout(
        rows=rows,
        offsets=np.array([0, 4, 7]),
        next_observation={"observation": np.zeros(2, np.float32)},
        version=1,
        env_steps=5,
        episodes=Episodes(),
    )
    columns = advantages(discount=0.9, gae_lambda=0.8).bind(ToyActor(environments=2))(rollout).columns
    assert columns["first"].tolist() == [0, 1, 0, 1, 0]
    assert columns["begins"].tolist() == [1, 0, 0, 1, 0]
    assert {"recurrent.torso", "latent.action"} <= set(columns)


def test_rows_without_a_value_are_refused_with_what_to_do() -> None:
    rollout = Rollout(
        rows=np.zeros(1, [("flags", "u1"), ("reward", "<f4")]),
        offsets=np.array([0, 1]),
        next_observation={},
        version=1,
        env_steps=1,
        episodes=Episodes(),
    )
    with pytest.raises(SchemaMismatch, match="advantages needs the column 'value'; rows have: flags, reward"):
        advantages(discount=0.9, gae_lambda=0.8).bind(ToyActor())(rollout)
