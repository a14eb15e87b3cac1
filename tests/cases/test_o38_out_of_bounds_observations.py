"""O38: an observation a hair outside of its bounds must not end a job; each environment says what shall happen."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from rollstream.clock import FakeClock
from rollstream.config import EnvironmentSpec
from rollstream.envs import Collector, RandomPolicy, make_environment
from rollstream.errors import EnvironmentFault
from rollstream.spaces import Rollout, row_spec

HOSTILE = "rollstream.envs.hostile:HostileEnvironment"


def collect(out_of_bounds: str, *, fault: str = "out_of_bounds", vectorization: str = "auto") -> Rollout:
    """From step 3 on every number is 1e-7 above its bound of 1."""
    spec = EnvironmentSpec(id=HOSTILE, kwargs={"fault": fault}, out_of_bounds=out_of_bounds, vectorization=vectorization)  # type: ignore[arg-type]
    environment = make_environment(spec, envs=2, seed=0, allow=["rollstream.envs"])
    layout = row_spec(environment.observation_leaves, environment.action_leaves)
    policy = RandomPolicy(environment.action_leaves, generator=np.random.default_rng(0))
    return Collector(environment, row_spec=layout, policy=policy, clock=FakeClock()).collect(8, version=1)


def test_o38_by_default_it_is_stored_as_it_came() -> None:
    assert collect("ignore").rows["observation"].max() == 1.0 + 1e-7


@pytest.mark.parametrize("vectorization", ["auto", "sync"])
def test_o38_it_is_clipped_where_that_is_asked_for(vectorization: str) -> None:
    rows = collect("clip", vectorization=vectorization).rows
    assert rows["observation"].max() == 1.0


def test_o38_an_error_gives_key_index_and_value_only() -> None:
    expected = r"in step: observation\[0, 0\] of copy 0 is 1.0000001, outside of -1.0 to 1.0; set environment.out_of_bounds"
    with pytest.raises(EnvironmentFault, match=expected) as caught:
        collect("error")
    assert len(str(caught.value)) < 250


def test_o38_a_warning_comes_once_and_training_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "rollstream.envs"):
        assert len(collect("warn").rows) > 16
    assert len([record for record in caplog.records if "outside of -1.0 to 1.0" in record.getMessage()]) == 1


def test_o38_float32_beside_a_float64_space_is_cast() -> None:
    assert collect("error", fault="float32").rows["observation"].dtype == np.float64
