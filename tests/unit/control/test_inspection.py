"""What the inspecting child says, and what it does not get to see. The child itself is tested in tests/integration."""

from __future__ import annotations

import pytest

from rollstream.clock import SystemClock
from rollstream.config import EnvironmentSpec
from rollstream.errors import ConfigError, EnvironmentFault, Problem
from rollstream.spaces import Leaf
from rollstream_control.submission.inspection import (
    EnvironmentInspector,
    Inspection,
    decode,
    encode,
    is_missing_package,
    without_secrets,
)

LEAVES = Inspection(
    observation_leaves=(
        Leaf(name="observation", kind="box", dtype="<f4", shape=(2,), low=(-1.0, float("-inf")), high=(1.0, 9.0)),
    ),
    action_leaves=(Leaf(name="action", kind="discrete", dtype="<i8", shape=(), counts=(3,), starts=(-1,)),),
)


def test_leaves_survive_the_way_from_child_to_parent() -> None:
    assert decode(encode(LEAVES)) == LEAVES


def test_a_missing_package_survives_the_way() -> None:
    assert decode(encode(None)) is None


def test_a_refusal_survives_the_way_with_its_problems() -> None:
    with pytest.raises(ConfigError, match="no such thing") as caught:
        decode(encode(ConfigError("no such thing", problems=[Problem(path="environment.id", message="unknown")])))
    assert caught.value.problems == (Problem(path="environment.id", message="unknown"),)


def test_only_an_import_that_failed_counts_as_a_missing_package() -> None:
    wrapped = EnvironmentFault("cannot be imported")
    wrapped.__cause__ = ModuleNotFoundError("mujoco")
    assert is_missing_package(wrapped)
    assert not is_missing_package(EnvironmentFault("raised ValueError"))


def test_the_child_gets_no_secrets() -> None:
    kept = without_secrets(
        {
            "PATH": "/bin",
            "ROLLSTREAM_REDIS_PASSWORD": "x",
            "ROLLSTREAM_OPERATOR_TOKEN": "x",
            "AWS_SECRET_ACCESS": "x",
            "api_key": "x",
            "HOME": "/",
        }
    )
    assert set(kept) == {"PATH", "HOME"}


def inspector(failure: Exception) -> EnvironmentInspector:
    def raises(spec: EnvironmentSpec) -> Inspection:
        raise failure

    return EnvironmentInspector(inspect_here=raises, allow=(), deadline_s=5.0, clock=SystemClock())


def test_an_environment_of_this_image_that_breaks_is_a_bad_field_not_a_broken_server() -> None:
    with pytest.raises(ConfigError, match="raised ValueError in its constructor"):
        inspector(EnvironmentFault("environment 'X-v1' raised ValueError in its constructor")).inspect(EnvironmentSpec(id="X-v1"))


def test_an_environment_whose_engine_is_not_installed_is_left_to_the_actors() -> None:
    failure = EnvironmentFault("raised DependencyNotInstalled")
    failure.__cause__ = ImportError("mujoco")
    assert inspector(failure).inspect(EnvironmentSpec(id="Ant-v5")) is None
