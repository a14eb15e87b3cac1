"""Greedy evaluation counts whole episodes, equally many of each copy of the environment."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rollstream.acting import evaluate
from rollstream.envs.vector_environment import Step
from rollstream.errors import ConfigError
from rollstream.spaces import Columns


class CountingEnvironments:
    """Copy i has episodes of i+1 steps with reward 1 each; in NEXT_STEP mode one more step resets it."""

    name = "counting"
    observation_leaves: tuple[Any, ...] = ()
    action_leaves: tuple[Any, ...] = ()

    def __init__(self, *, envs: int, resets_on_next_step: bool) -> None:
        self.envs = envs
        self.resets_on_next_step = resets_on_next_step
        self._t = np.zeros(envs, int)
        self._ended = np.zeros(envs, bool)

    def reset(self) -> Columns:
        return {"observation": np.zeros((self.envs, 1), np.float32)}

    def step(self, actions: Columns) -> Step:
        resetting = self._ended if self.resets_on_next_step else np.zeros(self.envs, bool)
        self._t = np.where(resetting, 0, self._t + 1)
        ended = ~resetting & (self._t >= np.arange(self.envs) + 1)
        if not self.resets_on_next_step:
            self._t[ended] = 0
        self._ended = ended
        return Step(
            observation={"observation": np.zeros((self.envs, 1), np.float32)},
            reward=np.where(resetting, 99.0, 1.0),
            terminated=ended,
            truncated=np.zeros(self.envs, bool),
        )

    def close(self, *, timeout_s: float = 5.0) -> None:
        """Nothing to close."""


class NoPolicy:
    """Keeps what it is told of episodes."""

    def __init__(self) -> None:
        self.told: list[list[str]] = []

    def begin(self, *, first: Any, over: Any) -> None:
        self.told.append(["first" if f else "over" if o else "" for f, o in zip(first, over, strict=True)])

    def greedy(self, observation: Columns) -> Columns:
        return {}


@pytest.mark.parametrize("resets_on_next_step", [True, False])
def test_each_copy_plays_its_share_and_fake_steps_do_not_count(resets_on_next_step: bool) -> None:
    environments = CountingEnvironments(envs=3, resets_on_next_step=resets_on_next_step)
    episodes = evaluate(NoPolicy(), environments, episodes=6)  # type: ignore[arg-type]
    assert episodes.returns.tolist() == [1.0, 1.0, 2.0, 2.0, 3.0, 3.0]
    assert episodes.lengths.tolist() == [1, 1, 2, 2, 3, 3]


def test_the_policy_is_told_where_episodes_begin_and_end() -> None:
    in_step, next_step = NoPolicy(), NoPolicy()
    evaluate(in_step, CountingEnvironments(envs=1, resets_on_next_step=False), episodes=2)  # type: ignore[arg-type]
    evaluate(next_step, CountingEnvironments(envs=1, resets_on_next_step=True), episodes=2)  # type: ignore[arg-type]
    assert in_step.told == [["first"], ["first"]]
    assert next_step.told == [["first"], ["over"], ["first"]]


def test_episodes_that_cannot_be_shared_equally_are_refused() -> None:
    with pytest.raises(ConfigError, match="cannot be shared by 3 environments"):
        evaluate(NoPolicy(), CountingEnvironments(envs=3, resets_on_next_step=True), episodes=4)  # type: ignore[arg-type]
