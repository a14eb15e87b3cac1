"""O25 stable-baselines3#1864, for V-trace: a critic that is right stays so at time limits and at ends, wherever sequences are cut."""

from __future__ import annotations

import numpy as np
import pytest

from rollstream.algorithms.unrolls import unrolls
from rollstream.flow.steps.trajectories import rollout_trajectories
from rollstream.flow.toy import TOY_ROWS
from rollstream.graph.backends.numpy_ops import NumpyOps
from rollstream.graph.returns import vtrace
from rollstream.spaces import Episodes, Flag, Rollout

STEPS = 10
DISCOUNT = 0.9


def rollout_of(end: Flag | None) -> Rollout:
    """An environment with reward 1 a step, whose observation is the step: an episode of 10 steps, and 4 steps of the next."""
    closing = [] if end is None else [(int(Flag.FINAL | end), 1, [STEPS], 0, 0.0, 0.0, 0.0)]
    first = [(int(Flag.FIRST) if step == 0 else 0, 1, [step], 0, 1.0, -0.7, 0.0) for step in range(STEPS)]
    rows = [*first, *closing, *(first[:4] if closing else [])]
    return Rollout(
        rows=np.array(rows, TOY_ROWS.dtype),
        offsets=np.array([0, len(rows)]),
        next_observation={"observation": np.full((1, 1), 4 if closing else STEPS, np.float32)},
        version=1,
        env_steps=len(rows) - len(closing),
        episodes=Episodes(),
    )


def errors(rollout: Rollout, values: np.ndarray, *, steps: int, ratio: float) -> np.ndarray:
    """Of the targets of all steps that count; `values` [STEPS + 1] by observation."""
    found = unrolls(rollout_trajectories(rollout, discount=DISCOUNT), steps=steps)
    series = {name: np.moveaxis(column, 1, 0) for name, column in found.items()}
    value = values[series["observation"][..., 0].astype(int)].astype(np.float32)
    ops = NumpyOps()
    ratios = np.full_like(value[:-1], ratio)
    reward, discount, continues = (series[name][:-1] for name in ("reward", "discount", "continues"))
    target = vtrace(ops, reward, discount, value[:-1], value[1:], ratios, continues).target
    counted = series["weight"][:-1] > 0
    assert counted.sum() == rollout.env_steps
    return np.asarray(target - value[:-1])[counted]


@pytest.mark.parametrize("ratio", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("steps", [1, 3, 10, 32])
@pytest.mark.parametrize("end", [Flag.TRUNCATED, None])
def test_o25_a_critic_of_a_task_without_end_is_right_at_the_infinite_return(end: Flag | None, steps: int, ratio: float) -> None:
    values = np.full(STEPS + 1, 1 / (1 - DISCOUNT))
    assert errors(rollout_of(end), values, steps=steps, ratio=ratio) == pytest.approx(0.0, abs=1e-5)


@pytest.mark.parametrize("ratio", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("steps", [1, 3, 10, 32])
def test_o25_a_critic_of_a_terminated_task_is_right_at_the_finite_return(steps: int, ratio: float) -> None:
    values = np.array([(1 - DISCOUNT ** (STEPS - step)) / (1 - DISCOUNT) for step in range(STEPS)] + [123.0])
    assert errors(rollout_of(Flag.TERMINATED), values, steps=steps, ratio=ratio) == pytest.approx(0.0, abs=1e-5)
