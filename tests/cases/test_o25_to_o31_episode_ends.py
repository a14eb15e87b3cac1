"""O25 to O31: time limits, autoreset, reset options. The multisets of O26 and O27 are in unit/envs/test_autoreset_rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rollstream.clock import FakeClock
from rollstream.config import EnvironmentSpec
from rollstream.envs import Collector, RandomPolicy, make_environment
from rollstream.errors import ConfigError
from rollstream.spaces import Flag, Rollout, row_spec

TOYS = ["rollstream.envs.toy"]
COUNTING = "rollstream.envs.toy:CountingEnvironment"
PICK = "rollstream.envs.toy:PickEnvironment"


def collect(spec: EnvironmentSpec, *, steps: int, options: dict[str, Any] | None = None, envs: int = 2) -> Rollout:
    environment = make_environment(spec, envs=envs, seed=1, allow=TOYS, reset_options=options)
    layout = row_spec(environment.observation_leaves, environment.action_leaves)
    policy = RandomPolicy(environment.action_leaves, generator=np.random.default_rng(0))
    rollout = Collector(environment, row_spec=layout, policy=policy, clock=FakeClock()).collect(steps, version=1)
    environment.close()
    return rollout


@pytest.mark.parametrize("vectorization", ["auto", "sync"])
def test_o25_a_time_limit_is_truncated_and_not_terminated(vectorization: str) -> None:
    spec = EnvironmentSpec(id=COUNTING, kwargs={"lengths": [99]}, max_episode_steps=10, vectorization=vectorization)  # type: ignore[arg-type]
    rows = collect(spec, steps=10).rows
    finals = rows[(rows["flags"] & Flag.FINAL) != 0]
    assert finals["flags"].tolist() == [Flag.FINAL | Flag.TRUNCATED] * 2
    assert finals["observation"][:, 2].tolist() == [10, 10]


def test_o25_cartpole_of_its_own_vector_form_marks_limits_like_the_plain_one() -> None:
    for vectorization in ("auto", "sync"):
        spec = EnvironmentSpec(id="CartPole-v1", max_episode_steps=4, vectorization=vectorization)  # type: ignore[arg-type]
        rows = collect(spec, steps=4).rows
        assert rows["flags"].tolist() == [Flag.FIRST, 0, 0, 0, Flag.FINAL | Flag.TRUNCATED] * 2
        assert rows["reward"].tolist() == [1.0, 1.0, 1.0, 1.0, 0.0] * 2


def test_o27_the_ignored_step_is_counted_nowhere() -> None:
    rollout = collect(EnvironmentSpec(id=COUNTING, kwargs={"lengths": [3]}, autoreset="next_step"), steps=8, envs=1)
    assert rollout.env_steps == 6
    assert rollout.episodes.lengths.tolist() == [3, 3]


def test_o28_an_unknown_autoreset_mode_is_refused() -> None:
    spec = EnvironmentSpec(id="rollstream.envs.toy:CountingVector", kwargs={"declared": "Sometimes"})
    with pytest.raises(ConfigError, match="unknown autoreset mode 'Sometimes'; known: NextStep, SameStep, Disabled"):
        collect(spec, steps=1)


def test_o29_a_vectorizer_without_declared_mode_is_refused() -> None:
    spec = EnvironmentSpec(id="rollstream.envs.toy:CountingVector", kwargs={"declared": ""})
    with pytest.raises(ConfigError, match="where final observations are is unknown; set environment.autoreset"):
        collect(spec, steps=1)


@pytest.mark.parametrize(
    "spec",
    [
        EnvironmentSpec(id=PICK),
        *(EnvironmentSpec(id=PICK, vectorization="sync", autoreset=mode) for mode in ("next_step", "same_step", "disabled")),
    ],
)  # fmt: skip
def test_o31_reset_options_hold_at_automatic_resets(spec: EnvironmentSpec) -> None:
    assert set(collect(spec, steps=12, options={"level": 3}).rows["observation"].tolist()) == {3}
    assert len(set(collect(spec, steps=12).rows["observation"].tolist())) > 1
