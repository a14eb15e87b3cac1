"""The family of navigation tasks, and reset options that come later than the first reset."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rollstream.clock import FakeClock
from rollstream.config import EnvironmentSpec
from rollstream.envs import Collector, make_environment
from rollstream.envs.navigation import PointNavigation
from rollstream.spaces import Flag, row_spec


def rewards(environment: PointNavigation, *, action: float = 0.0, steps: int = 1) -> np.ndarray:
    actions = np.full((environment.num_envs, 2), action, np.float32)
    return np.array([environment.step(actions)[1] for _ in range(steps)])


def test_a_task_is_the_same_goal_for_all_copies_in_every_episode() -> None:
    environment, again = PointNavigation(num_envs=3), PointNavigation(num_envs=1)
    environment.reset(seed=1, options={"task": 5})
    again.reset(seed=2, options={"task": 5})
    first = rewards(environment)[0]
    assert len(set(first.tolist())) == 1
    rewards(environment, steps=19)
    assert rewards(environment)[0].tolist() == first.tolist()
    environment.reset()
    assert rewards(environment)[0].tolist() == first.tolist()
    assert rewards(again)[0, 0] == first[0]
    environment.reset(options={"task": 6})
    assert rewards(environment)[0, 0] != first[0]


def test_without_a_task_every_copy_draws_goals_of_its_own() -> None:
    environment = PointNavigation(num_envs=4)
    environment.reset(seed=1)
    first = rewards(environment)[0]
    assert len(set(first.tolist())) == 4
    rewards(environment, steps=19)
    assert rewards(environment)[0].tolist() != first.tolist()


def test_the_reward_is_the_squared_distance_and_steps_are_bounded() -> None:
    environment = PointNavigation(num_envs=1, episode_steps=2)
    environment.reset(seed=0, options={"task": 3})
    goal = np.random.default_rng(3).uniform(-0.5, 0.5, 2)
    observation, reward, terminated, truncated, _ = environment.step(np.array([[5.0, -5.0]]))
    assert observation == pytest.approx(np.array([[0.1, -0.1]]))
    assert reward[0] == pytest.approx(-((0.1 - goal[0]) ** 2 + (-0.1 - goal[1]) ** 2), rel=1e-6)
    observation, _, terminated, truncated, infos = environment.step(np.array([[0.1, 0.0]]))
    assert (terminated.tolist(), truncated.tolist()) == ([False], [True])
    assert infos["final_obs"] == pytest.approx(np.array([[0.2, -0.1]]))
    assert observation.tolist() == [[0, 0]]


class Still:
    """Repeats the lowest action."""

    def __init__(self, leaves: Any, envs: int) -> None:
        self.columns = {
            leaf.name: np.full((envs, *leaf.shape), leaf.starts[0] if leaf.starts else 0, leaf.dtype) for leaf in leaves
        }

    def act(self, observation: Any) -> Any:
        return self.columns


def collector(spec: EnvironmentSpec) -> Collector:
    environment = make_environment(spec, envs=2, seed=1, allow=("rollstream",))
    rows = row_spec(environment.observation_leaves, environment.action_leaves)
    return Collector(environment, row_spec=rows, policy=Still(environment.action_leaves, 2), clock=FakeClock())


@pytest.mark.parametrize("settings", [{}, {"vectorization": "sync", "autoreset": "disabled"}, {"out_of_bounds": "error"}])
def test_a_restart_with_options_begins_new_episodes_with_them_and_keeps_them(settings: dict[str, Any]) -> None:
    made = collector(EnvironmentSpec(id="rollstream.envs.toy:PickEnvironment", kwargs={"levels": 9}, **settings))
    for level in (3, 7):
        made.restart({"level": level})
        rollout = made.collect(2, version=1)
        seen = rollout.rows["observation"][(rollout.rows["flags"] & Flag.FIRST) != 0]
        assert seen.tolist() == [level] * 4
    made.restart()
    assert made.collect(1, version=1).rows["observation"][0] == 7


def test_whole_episodes_fit_a_rollout_after_a_restart() -> None:
    made = collector(EnvironmentSpec(id="rollstream.envs.navigation:PointNavigation"))
    made.collect(3, version=1)
    made.restart({"task": 4})
    rollout = made.collect(20, version=1)
    assert rollout.env_steps == 40
    assert rollout.episodes.lengths.tolist() == [20, 20]
    assert ((rollout.rows["flags"] & Flag.FINAL) != 0).sum() == 2
