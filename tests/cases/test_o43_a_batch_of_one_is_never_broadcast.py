"""O43: a vector environment that returns the observation of one copy for eight is refused, at the first step and at the thousandth."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest

from rollstream.envs.gymnasium_vector import GymnasiumVector, InProcess
from rollstream.errors import EnvironmentFault


class OneOfEight(InProcess):
    """After some steps, a slice of the batch in place of the batch."""

    def __init__(self, vector: Any, *, good_steps: int, key: int) -> None:
        super().__init__(vector, name="sliced")
        step, taken = self.step, iter(range(1_000))

        def sliced(actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
            result = list(step(actions))
            if next(taken) >= good_steps:
                result[key] = result[key][:1]
            return tuple(result)

        self.step = sliced


@pytest.mark.parametrize("good_steps", [0, 7])
@pytest.mark.parametrize(("key", "name"), [(0, "observation"), (1, "reward"), (2, "terminated"), (3, "truncated")])
def test_o43_a_slice_of_the_batch_is_refused_at_any_step(key: int, name: str, good_steps: int) -> None:
    vector = gymnasium.make_vec("CartPole-v1", num_envs=8, vectorization_mode="sync")
    given = (vector.single_observation_space, vector.single_action_space)
    simulator = OneOfEight(vector, good_steps=good_steps, key=key)
    environment = GymnasiumVector(simulator, name="sliced", envs=8, spaces=given, mode="next_step", seed=1)
    environment.reset()
    actions = {"action": np.zeros(8, np.int64)}
    for _ in range(good_steps):
        environment.step(actions)
    with pytest.raises(EnvironmentFault, match=f"environment 'sliced' in step: {name}: expected 8 .*got an array of shape"):
        environment.step(actions)
