"""O25 stable-baselines3#1864: a truncated episode bootstraps, a terminated one does not; both fixed points hold exactly."""

from __future__ import annotations

import numpy as np
import pytest

from rollstream.flow.steps.advantages import rollout_advantages
from rollstream.flow.toy import TOY_ROWS
from rollstream.spaces import Episodes, Flag, Rollout

STEPS = 10


def episode(end: Flag, values: list[float]) -> Rollout:
    flags = [int(Flag.FIRST)] + [0] * (STEPS - 1) + [int(Flag.FINAL | end)]
    rows = [(flag, 1, [0.0], 0, 1.0 if index < STEPS else 0.0, 0.0, values[index]) for index, flag in enumerate(flags)]
    return Rollout(
        rows=np.array(rows, TOY_ROWS.dtype),
        offsets=np.array([0, STEPS + 1]),
        next_observation={"observation": np.zeros((1, 1), np.float32)},
        version=1,
        env_steps=STEPS,
        episodes=Episodes(),
    )


@pytest.mark.parametrize("gae_lambda", [0.0, 0.95, 1.0])
def test_o25_a_critic_of_a_truncated_task_is_right_at_the_infinite_return(gae_lambda: float) -> None:
    rollout = episode(Flag.TRUNCATED, [10.0] * (STEPS + 1))
    estimated = rollout_advantages(rollout, np.zeros(1, np.float32), discount=0.9, gae_lambda=gae_lambda)
    assert estimated[:STEPS] == pytest.approx(0.0, abs=1e-5)


@pytest.mark.parametrize("gae_lambda", [0.0, 0.95, 1.0])
def test_o25_a_critic_of_a_terminated_task_is_right_at_the_finite_return(gae_lambda: float) -> None:
    values = [(1 - 0.9 ** (STEPS - step)) / 0.1 for step in range(STEPS)]
    rollout = episode(Flag.TERMINATED, [*values, 123.0])
    estimated = rollout_advantages(rollout, np.zeros(1, np.float32), discount=0.9, gae_lambda=gae_lambda)
    assert estimated[:STEPS] == pytest.approx(0.0, abs=1e-5)
