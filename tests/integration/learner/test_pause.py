"""Orders reach an experiment to which nothing comes any more: control takes the actors away with the order to pause."""

from __future__ import annotations

from typing import Any

import pytest

from rollstream.clock import SystemClock
from rollstream.store import Assignment, Assignments, Experiments, Store

PAUSED_S = 2.0


def updates(store: Store, experiment: str) -> int:
    return Experiments(store).counters(experiment).get("updates", 0)


def checkpoints(store: Store, experiment: str) -> int:
    return sum(record["kind"] == "checkpoint" for _, record in Experiments(store).events(experiment))


@pytest.mark.parametrize("algorithm", ["ppo", "dqn"])
def test_an_experiment_without_actors_pauses_resumes_and_stops(
    algorithm: str, store: Store, start: Any, submit: Any, reaches: Any
) -> None:
    experiments = Experiments(store)
    experiment = submit(algorithm)
    if algorithm == "dqn":
        start("replay")
    start("learner")
    reaches(experiment, "running")
    for order, phase in (("pause", "paused"), ("run", "running"), ("pause", "paused"), ("stop", "stopped")):
        experiments.order(experiment, order)  # type: ignore[arg-type]
        reaches(experiment, phase)
    assert checkpoints(store, experiment) == 3  # one for each pause, and the last


def test_an_experiment_whose_actor_left_pauses_and_goes_on_with_the_next(
    store: Store, start: Any, submit: Any, reaches: Any, until: Any
) -> None:
    experiments, assignments = Experiments(store), Assignments(store)
    experiment = submit("ppo")
    start("learner")
    start("actor")
    for generation in (1, 2):
        trained = updates(store, experiment)
        assignments.assign("actor-0", Assignment(experiment=experiment, ordinal=0, generation=generation))
        until(lambda trained=trained: updates(store, experiment) > trained)
        assignments.assign("actor-0", None)  # as control does, a moment later
        experiments.order(experiment, "pause")
        reaches(experiment, "paused")
        experiments.order(experiment, "run")
        reaches(experiment, "running")


def test_a_checkpoint_is_made_when_it_is_ordered_without_actors_and_while_paused(
    store: Store, start: Any, submit: Any, reaches: Any, until: Any
) -> None:
    experiments = Experiments(store)
    experiment = submit("ppo")
    start("learner")
    reaches(experiment, "running")
    experiments.order(experiment, "checkpoint")
    until(lambda: checkpoints(store, experiment) == 1)
    experiments.order(experiment, "pause")
    reaches(experiment, "paused")
    experiments.order(experiment, "checkpoint")
    until(lambda: checkpoints(store, experiment) == 3)


def test_an_experiment_that_is_to_pause_before_it_began_takes_no_learner(
    store: Store, start: Any, submit: Any, reaches: Any
) -> None:
    first, second = submit("ppo", number=1), submit("ppo", number=2)
    Experiments(store).order(first, "pause")
    start("learner")
    reaches(second, "running")
    assert Experiments(store).status(first).phase == "queued"
    Experiments(store).order(second, "stop")
    Experiments(store).order(first, "run")
    reaches(first, "running")


def test_time_in_which_an_experiment_is_paused_is_not_time_of_running(
    store: Store, start: Any, submit: Any, reaches: Any, until: Any
) -> None:
    clock, experiments = SystemClock(), Experiments(store)
    experiment = submit("ppo")
    start("learner")
    reaches(experiment, "running")
    experiments.order(experiment, "pause")
    reaches(experiment, "paused")
    clock.sleep(PAUSED_S)
    experiments.order(experiment, "run")
    start("actor")
    Assignments(store).assign("actor-0", Assignment(experiment=experiment, ordinal=0, generation=1))
    until(lambda: experiments.newest_report(experiment))
    first = experiments.newest_report(experiment)
    assert first is not None
    since_s = clock.wall_s() - (experiments.status(experiment).started_s or 0.0)
    assert 0.0 < first[1]["wall_s"] <= since_s - PAUSED_S
