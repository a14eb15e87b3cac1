"""Who wants actors: claimed experiments, and the queued ones that a learner will take next. And who needs no learner for an order."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import pytest

from rollstream.config import EnvironmentSpec, ExperimentSpec, Phase
from rollstream_control.scheduling.scheduler import OpenExperiment, demands, phase_without_learner

SPEC = ExperimentSpec(algorithm="ppo", environment=EnvironmentSpec(id="CartPole-v1"), actors=3, weight=2.0)


def entry(name: str, phase: Phase, wanted: Literal["run", "pause", "stop"] = "run") -> OpenExperiment:
    return OpenExperiment(id=name, spec=SPEC, phase=phase, wanted=wanted)


def wanting(*experiments: OpenExperiment, idle_learners: int = 0, learners: int = 1) -> list[str]:
    return [demand.experiment for demand in demands(experiments, idle_learners=idle_learners, learners=learners)]


def test_running_experiments_want_actors_with_the_weight_and_number_of_their_spec() -> None:
    found = demands([entry("a", "running")], idle_learners=0, learners=1)
    assert [(demand.experiment, demand.weight, demand.actors) for demand in found] == [("a", 2.0, 3)]


def test_a_queued_experiment_waits_while_every_learner_is_busy() -> None:
    assert wanting(entry("a", "running"), entry("b", "queued")) == ["a"]


def test_a_queued_experiment_that_an_idle_learner_will_take_gets_actors_already() -> None:
    queue = [entry("a", "running"), entry("b", "queued"), entry("c", "queued")]
    assert wanting(*queue, idle_learners=1, learners=2) == ["a", "b"]


def test_before_the_first_learner_comes_the_first_in_the_queue_gets_actors() -> None:
    assert wanting(entry("a", "queued"), entry("b", "queued"), learners=0) == ["a"]


def test_paused_and_stopped_queued_experiments_want_none() -> None:
    queue = [entry("a", "paused", "pause"), entry("b", "queued", "stop"), entry("c", "queued", "pause")]
    assert wanting(*queue, idle_learners=3, learners=3) == []


def test_an_experiment_that_is_to_resume_wants_actors_before_it_runs() -> None:
    assert wanting(entry("a", "paused", "run")) == ["a"]


def test_an_experiment_that_was_told_to_stop_keeps_its_actors_until_it_has() -> None:
    assert wanting(entry("a", "running", "stop")) == ["a"]


@pytest.mark.parametrize(
    ("phase", "wanted", "idle_learners", "expected"),
    [
        ("queued", "run", 0, None),
        ("running", "run", 0, None),
        ("queued", "pause", 1, "paused"),
        ("running", "pause", 1, "paused"),
        ("paused", "pause", 1, None),
        ("paused", "run", 0, "queued"),
        ("queued", "stop", 1, "stopped"),
        ("running", "stop", 0, "stopped"),
        ("running", "stop", 1, None),
    ],
)
def test_an_order_is_carried_out_for_an_experiment_that_no_learner_has(
    phase: Phase, wanted: Literal["run", "pause", "stop"], idle_learners: int, expected: str | None
) -> None:
    assert phase_without_learner(entry("a", phase, wanted), idle_learners=idle_learners) == expected


def test_an_algorithm_that_learns_from_recorded_data_gets_no_actors() -> None:
    offline = replace(entry("a", "running"), spec=ExperimentSpec(algorithm="bc", environment=EnvironmentSpec(id="CartPole-v1")))
    assert [demand.actors for demand in demands([offline], idle_learners=0, learners=1)] == [0]
