"""Validation lists every bad field at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from pydantic import Field

from rollstream.config import EnvironmentSpec, Frozen
from rollstream.errors import ConfigError, Problem, SpaceError
from rollstream.spaces import Leaf
from rollstream_control.submission.inspection import Inspection
from rollstream_control.submission.registry import RegisteredAlgorithms
from rollstream_control.submission.validation import Inspected, Validator

CART = Inspection(
    observation_leaves=(Leaf(name="observation", kind="box", dtype="<f4", shape=(4,)),),
    action_leaves=(Leaf(name="action", kind="discrete", dtype="<i8", shape=(), counts=(2,), starts=(0,)),),
)
ARM = Inspection(
    observation_leaves=CART.observation_leaves,
    action_leaves=(Leaf(name="action", kind="box", dtype="<f4", shape=(1,)),),
)


class Settings(Frozen):
    """Settings of a toy algorithm."""

    rollout_steps: int = Field(default=8, ge=1)
    """Steps."""


class ToyAlgorithms:
    def known(self) -> list[str]:
        return ["toy"]

    def settings_type(self, name: str) -> type[Frozen]:
        return Settings

    def check(self, name: str, settings: Mapping[str, Any], inspected: Inspected) -> None:
        if inspected.action_leaves[0].kind != "discrete":
            raise SpaceError("action: toy needs a Discrete action, got box")


class ToyInspector:
    """Knows three environments; `Far-v1` is not installed here."""

    def inspect(self, spec: EnvironmentSpec) -> Inspected | None:
        if spec.id == "Far-v1":
            return None
        if spec.id == "Odd-v1":
            raise SpaceError(
                "observation.text: Text spaces cannot be stored", problems=[Problem(path="observation.text", message="no")]
            )
        if spec.id not in ("Cart-v1", "Arm-v1"):
            raise ConfigError(f"unknown environment {spec.id!r}; did you mean 'Cart-v1'?")
        return CART if spec.id == "Cart-v1" else ARM


@pytest.fixture
def validator() -> Validator:
    return Validator(algorithms=ToyAlgorithms(), inspector=ToyInspector())


def problems_of(validator: Validator, document: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(ConfigError, match=r"experiment spec has \d+ bad field") as caught:
        validator.validate(document)
    return {problem.path: problem.message for problem in caught.value.problems}


def test_a_good_document_becomes_a_spec(validator: Validator) -> None:
    spec = validator.validate({"algorithm": "toy", "environment": {"id": "Cart-v1"}, "settings": {"rollout_steps": 4}})
    assert spec.settings == {"rollout_steps": 4}


def test_every_bad_field_is_listed_with_its_path(validator: Validator) -> None:
    problems = problems_of(
        validator,
        {
            "name": "No Capitals",
            "algorithm": "toi",
            "environment": {"id": "Cat-v1"},
            "settings": {},
            "actors": -1,
            "wieght": 2,
            "stop": {"env_steps": -1},
        },
    )
    assert set(problems) == {"name", "algorithm", "environment.id", "actors", "wieght", "stop.env_steps"}
    assert "did you mean 'toy'?" in problems["algorithm"]
    assert "did you mean 'weight'?" in problems["wieght"]
    assert "did you mean 'Cart-v1'?" in problems["environment.id"]


def test_settings_of_the_algorithm_are_checked_under_their_path(validator: Validator) -> None:
    document = {"algorithm": "toy", "environment": {"id": "Cart-v1"}, "settings": {"rollout_step": 1, "rollout_steps": "many"}}
    problems = problems_of(validator, document)
    assert set(problems) == {"settings.rollout_step", "settings.rollout_steps"}
    assert "did you mean 'rollout_steps'?" in problems["settings.rollout_step"]


def test_spaces_that_the_algorithm_cannot_act_on_are_refused(validator: Validator) -> None:
    problems = problems_of(validator, {"algorithm": "toy", "environment": {"id": "Arm-v1"}})
    assert problems == {"environment": "action: toy needs a Discrete action, got box"}


def test_a_space_that_cannot_be_stored_is_named_by_its_path(validator: Validator) -> None:
    problems = problems_of(validator, {"algorithm": "toy", "environment": {"id": "Odd-v1"}})
    assert problems == {"environment.id": "observation.text: no"}


def test_an_environment_that_is_not_installed_here_is_left_to_the_actors(validator: Validator) -> None:
    assert validator.validate({"algorithm": "toy", "environment": {"id": "Far-v1"}}).environment.id == "Far-v1"


def test_numbers_that_json_cannot_carry_are_refused_first(validator: Validator) -> None:
    document = {"algorithm": "toy", "environment": {"id": "Cart-v1"}, "stop": {"mean_return": float("nan")}}
    assert problems_of(validator, document) == {"stop.mean_return": "must be a finite number, got nan"}


def test_nothing_at_all_says_what_is_required(validator: Validator) -> None:
    assert problems_of(validator, {}) == {"algorithm": "is required", "environment": "is required"}


def test_wrong_types_everywhere_are_listed_and_break_nothing(validator: Validator) -> None:
    problems = problems_of(validator, {"algorithm": 3, "environment": "Cart-v1", "settings": [1]})
    assert set(problems) == {"algorithm", "environment", "settings"}


def test_a_limiter_that_would_deadlock_is_refused_with_the_inequality() -> None:
    validator = Validator(algorithms=RegisteredAlgorithms(), inspector=ToyInspector())
    document = {
        "algorithm": "dqn",
        "environment": {"id": "Far-v1"},
        "settings": {"min_items": 2_000, "table_items": 1_000},
    }
    with pytest.raises(ConfigError, match=r"min_items \(2000\) must be <= table_items \(1000\)"):
        validator.validate(document)
