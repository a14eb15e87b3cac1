"""trajectories: rows in order, episode ends, what bootstraps; numbers worked by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rollstream.errors import ConfigError, SchemaMismatch
from rollstream.flow import ActorFragment, Actors, Description
from rollstream.flow.steps import trajectories
from rollstream.flow.steps.trajectories import rollout_trajectories
from rollstream.flow.toy import TOY_ROWS, ToyActor
from rollstream.spaces import Episodes, Flag, Rollout

ENDED = int(Flag.FINAL | Flag.TERMINATED)
CUT = int(Flag.FINAL | Flag.TRUNCATED)
NEXT = 99.0


def rollout_of(*environments: list[tuple[int, float]]) -> Rollout:
    """A rollout from (flags, reward) of each row; the observation counts rows, the next one is 99."""
    rows = [
        (flags, 7, [index], 0 if flags & Flag.FINAL else 1 + index, reward, -0.1 * (1 + index), 0.5)
        for environment in environments
        for index, (flags, reward) in enumerate(environment)
    ]
    packed = np.array(rows, TOY_ROWS.dtype)
    return Rollout(
        rows=packed,
        offsets=np.cumsum([0, *(len(environment) for environment in environments)]).astype(np.int64),
        next_observation={"observation": np.full((len(environments), 1), NEXT, np.float32)},
        version=7,
        env_steps=int(((packed["flags"] & Flag.FINAL) == 0).sum()),
        episodes=Episodes(),
    )


def columns_of(rollout: Rollout) -> dict[str, list[float]]:
    columns = rollout_trajectories(rollout, discount=0.5)
    return {name: column.reshape(-1).tolist() for name, column in columns.items()}


def test_an_episode_under_way_bootstraps_from_the_next_observation() -> None:
    found = columns_of(rollout_of([(1, 1.0), (0, 2.0)]))
    assert found["observation"] == [0, 1, NEXT]
    assert found["reward"] == [1, 2, 0]
    assert found["discount"] == [0.5, 0.5, 0]
    assert found["continues"] == [1, 0, 0]
    assert found["weight"] == [1, 1, 0]
    assert found["begins"] == [1, 0, 0]
    assert found["action"] == [1, 2, 2]  # the row that bootstraps repeats what was done last
    assert found["version"] == [7, 7, 7]


def test_a_terminated_episode_leaves_no_row_behind() -> None:
    found = columns_of(rollout_of([(1, 1.0), (0, 2.0), (ENDED, 0.0), (1, 3.0)]))
    assert found["observation"] == [0, 1, 3, NEXT]
    assert found["discount"] == [0.5, 0, 0.5, 0]
    assert found["continues"] == [1, 0, 0, 0]
    assert found["weight"] == [1, 1, 1, 0]


def test_a_truncated_episode_bootstraps_from_its_final_row() -> None:
    found = columns_of(rollout_of([(1, 1.0), (CUT, 0.0), (1, 3.0), (CUT, 0.0)]))
    assert found["observation"] == [0, 1, 2, 3]  # and nothing is added, since the last row bootstraps already
    assert found["discount"] == [0.5, 0, 0.5, 0]
    assert found["continues"] == [0, 0, 0, 0]
    assert found["weight"] == [1, 0, 1, 0]
    assert found["action"] == [1, 1, 3, 3]


def test_a_rollout_may_end_with_a_terminated_episode() -> None:
    found = columns_of(rollout_of([(1, 1.0), (ENDED, 0.0)]))
    assert found["observation"] == [0, NEXT]
    assert found["discount"] == [0, 0]
    assert found["continues"] == [0, 0]


def test_environments_follow_each_other_and_one_without_rows_is_passed_over() -> None:
    found = columns_of(rollout_of([(1, 1.0)], [], [(0, 5.0), (0, 6.0)]))
    assert found["begins"] == [1, 0, 1, 0, 0]
    assert found["reward"] == [1, 0, 5, 6, 0]
    assert found["continues"] == [0, 0, 1, 0, 0]


def test_what_policies_remember_comes_along() -> None:
    rollout = rollout_of([(1, 1.0), (0, 2.0), (CUT, 0.0), (1, 3.0)])
    remembering = np.zeros(4, np.dtype([*TOY_ROWS.dtype.descr, ("recurrent.torso", "<f4", (2,))]))
    for name in rollout.rows.dtype.names or ():
        remembering[name] = rollout.rows[name]
    remembering["recurrent.torso"] = np.arange(8).reshape(4, 2)
    columns = rollout_trajectories(replace(rollout, rows=remembering), discount=0.5)
    assert columns["first"].tolist() == [1, 0, 0, 1, 0]
    assert columns["recurrent.torso"][:4].tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]


def test_the_batch_accounts_for_the_steps_of_its_rollout() -> None:
    shards = Actors().rollouts(steps=4).for_each(trajectories(discount=0.9)).gather_async()
    batch = ActorFragment(Description(shards), ToyActor(environments=2)).run_once("gather_async")
    assert batch is not None
    assert (batch.env_steps, batch.version, batch.newest_version) == (8, 1, 1)
    assert batch.columns["weight"].sum() == 8
    assert batch.rows == 10  # one row that bootstraps for each environment


def test_bad_settings_and_rows_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"discount of trajectories must be between 0 and 1, got 1\.5"):
        trajectories(discount=1.5)
    rollout = rollout_of([(1, 1.0)])
    names = [name for name in rollout.rows.dtype.names or () if name != "log_prob"]
    with pytest.raises(SchemaMismatch, match="trajectories needs the column 'log_prob'; rows have: "):
        trajectories(discount=0.9).bind(ToyActor())(replace(rollout, rows=rollout.rows[names]))
