"""A policy that remembers is told where episodes begin, in every autoreset mode, and final observations leave its memory alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from rollstream.clock import FakeClock
from rollstream.config import EnvironmentSpec
from rollstream.envs import Collector, make_environment
from rollstream.spaces import Column, Columns, Flag, row_spec

ENVS = 3
COUNTED = Column(name="counted", dtype="<f4")
SPECS: dict[str, EnvironmentSpec] = {
    mode: EnvironmentSpec(id="rollstream.envs.toy:CountingEnvironment", vectorization="sync", autoreset=mode)  # type: ignore[arg-type]
    for mode in ("next_step", "same_step", "disabled")
}


class Remembering:
    """Remembers how many steps it has done in each episode, and nothing of what it saw."""

    def __init__(self) -> None:
        self.counted = np.zeros(ENVS, np.float32)
        self.over: list[list[bool]] = []

    def begin(self, *, first: npt.NDArray[np.bool_], over: npt.NDArray[np.bool_]) -> None:
        self.counted[first] = 0
        self.over.append(over.tolist())

    def act(self, observation: Columns) -> Columns:
        before = self.counted.copy()
        self.counted += 1
        return {"action": np.zeros(ENVS, np.int64), "counted": before}

    def extras(self, observation: Columns) -> dict[str, Any]:
        return {"counted": self.counted}


@pytest.mark.parametrize("steps", [[40], [1] * 40, [2, 7, 1, 13, 5, 11]])
@pytest.mark.parametrize("mode", list(SPECS))
def test_what_is_remembered_is_the_step_of_the_episode_in_every_row(mode: str, steps: list[int]) -> None:
    environment = make_environment(SPECS[mode], envs=ENVS, seed=5, allow=["rollstream.envs.toy"])
    layout = row_spec(environment.observation_leaves, environment.action_leaves, (COUNTED,))
    policy = Remembering()
    collector = Collector(environment, row_spec=layout, policy=policy, clock=FakeClock())
    rows = np.concatenate([collector.collect(count, version=1).rows for count in steps])
    assert rows["counted"].tolist() == rows["observation"][:, 2].tolist()
    assert np.count_nonzero(rows["flags"] & Flag.FINAL) > ENVS
    assert np.any(policy.over) == environment.resets_on_next_step
    environment.close()


def test_a_policy_that_follows_no_episodes_is_not_told_of_them() -> None:
    environment = make_environment(SPECS["next_step"], envs=ENVS, seed=5, allow=["rollstream.envs.toy"])
    layout = row_spec(environment.observation_leaves, environment.action_leaves, (COUNTED,))
    policy = Remembering()
    policy.follows_episodes = False  # type: ignore[attr-defined]
    Collector(environment, row_spec=layout, policy=policy, clock=FakeClock()).collect(9, version=1)
    assert policy.over == []
    environment.close()
