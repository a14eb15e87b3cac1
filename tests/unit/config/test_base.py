"""Specs: nothing unknown, every bad field at once."""

from __future__ import annotations

import pytest

from rollstream.config import ExperimentSpec, load, suggestion
from rollstream.errors import ConfigError

GOOD = {"algorithm": "ppo", "environment": {"id": "CartPole-v1"}}


def test_a_small_spec_is_enough() -> None:
    spec = load(ExperimentSpec, GOOD, what="experiment spec")
    assert spec.actors == 2 and spec.environment.id == "CartPole-v1"


def test_every_bad_field_is_listed_with_its_path() -> None:
    bad = {
        "algorithm": "ppo",
        "environment": {"id": "", "vectorisation": "sync"},
        "actors": -1,
        "stop": {"env_steps": "many"},
        "nmae": "x",
    }
    with pytest.raises(ConfigError, match="experiment spec has 5 bad field") as caught:
        load(ExperimentSpec, bad, what="experiment spec")
    listed = {problem.path: problem.message for problem in caught.value.problems}
    assert set(listed) == {"environment.id", "environment.vectorisation", "actors", "stop.env_steps", "nmae"}
    assert "did you mean 'vectorization'?" in listed["environment.vectorisation"]
    assert "did you mean 'name'?" in listed["nmae"]
    assert listed["actors"].endswith("got -1")


def test_a_missing_field_is_required() -> None:
    with pytest.raises(ConfigError, match="algorithm: is required"):
        load(ExperimentSpec, {"environment": {"id": "x"}}, what="experiment spec")


def test_a_blank_checkpoint_is_refused() -> None:
    with pytest.raises(ConfigError, match="from_checkpoint must be a path or null"):
        load(ExperimentSpec, GOOD | {"from_checkpoint": " "}, what="experiment spec")


def test_the_hash_changes_with_any_field_and_only_then() -> None:
    one = load(ExperimentSpec, GOOD, what="spec")
    assert one.hash == load(ExperimentSpec, dict(reversed(GOOD.items())), what="spec").hash
    assert one.hash != load(ExperimentSpec, GOOD | {"seed": 1}, what="spec").hash


def test_a_suggestion_names_the_close_one_or_lists_all() -> None:
    assert suggestion("discont", ["discount", "epochs"]) == "; did you mean 'discount'?"
    assert suggestion("zzz", ["discount", "epochs"]) == "; known: discount, epochs"
    assert suggestion("zzz", []) == ""
