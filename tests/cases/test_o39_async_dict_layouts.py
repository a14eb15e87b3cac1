"""O39: worker processes that share memory give Dict observations as the same process does."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest

from rollstream.clock import FakeClock, SystemClock
from rollstream.config import EnvironmentSpec
from rollstream.envs import Collector, RandomPolicy, make_environment
from rollstream.envs.gymnasium_vector import GymnasiumVector, InProcess
from rollstream.envs.toy import NestedEnvironment
from rollstream.spaces import row_spec

NESTED = "rollstream.envs.toy:NestedEnvironment"


@pytest.mark.parametrize("autoreset", ["next_step", "same_step"])
def test_o39_async_workers_with_shared_memory_give_the_rows_of_sync(autoreset: str) -> None:
    found = []
    for vectorization in ("async", "sync"):
        spec = EnvironmentSpec(id=NESTED, vectorization=vectorization, autoreset=autoreset)  # type: ignore[arg-type]
        environment = make_environment(spec, envs=3, seed=5, allow=["rollstream.envs.toy"])
        try:
            layout = row_spec(environment.observation_leaves, environment.action_leaves)
            policy = RandomPolicy(environment.action_leaves, generator=np.random.default_rng(0))
            clock = SystemClock() if vectorization == "async" else FakeClock()
            found.append(Collector(environment, row_spec=layout, policy=policy, clock=clock).collect(12, version=1).rows)
        finally:
            environment.close()
    assert found[0].tobytes() == found[1].tobytes()


class TupleOfDictionaries(InProcess):
    """Gives one dictionary for each copy, as Gymnasium did with shared memory, in place of one of arrays."""

    def reset(self, *, seed: int | list[int] | None, options: dict[str, object] | None) -> tuple[object, dict[str, object]]:
        value, infos = super().reset(seed=seed, options=options)
        return tuple({"x": value["x"][index], "y": {"z": value["y"]["z"][index]}} for index in range(len(value["x"]))), infos


class Small(NestedEnvironment):
    """A Dict in a Dict."""

    def __init__(self) -> None:
        super().__init__()
        self.observation_space = gymnasium.spaces.Dict(
            x=gymnasium.spaces.Box(-1.0, 1.0, (2,)), y=gymnasium.spaces.Dict(z=gymnasium.spaces.Discrete(3))
        )

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
        return {"x": np.full(2, 0.25 if seed == 1 else 0.5, np.float32), "y": {"z": np.int64(seed or 0)}}, {}


def test_o39_both_layouts_are_read_the_same() -> None:
    found = []
    for kind in (InProcess, TupleOfDictionaries):
        vector = gymnasium.vector.SyncVectorEnv([Small, Small])
        given = (vector.single_observation_space, vector.single_action_space)
        made = GymnasiumVector(kind(vector, name="small"), name="small", envs=2, spaces=given, mode="next_step", seed=[1, 2])
        found.append(made.reset())
    for name, column in found[0].items():
        np.testing.assert_array_equal(found[1][name], column)
    assert found[1]["observation.y.z"].tolist() == [1, 2]
    assert found[1]["observation.x"].tolist() == [[0.25, 0.25], [0.5, 0.5]]
