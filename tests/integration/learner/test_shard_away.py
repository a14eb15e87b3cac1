"""A replay shard that is away holds an experiment up; it does not fail it, and it does not keep a learner from leaving."""

from __future__ import annotations

from typing import Any

from rollstream.clock import Deadline, SystemClock
from rollstream.store import Experiments, Lease, Store, keys


def test_an_experiment_waits_for_its_shard_and_outlives_it(store: Store, start: Any, submit: Any, reaches: Any) -> None:
    experiment = submit("dqn")
    learner = start("learner")
    reaches(experiment, "starting")
    SystemClock().sleep(3.0)  # longer than one look
    assert Experiments(store).status(experiment).phase == "starting"
    shard = start("replay")
    reaches(experiment, "running")
    shard.stop()
    learner.stop()
    status = Experiments(store).status(experiment)
    assert status.phase == "queued", status.reason


def test_an_experiment_that_waits_for_its_shard_can_be_stopped(store: Store, start: Any, submit: Any, reaches: Any) -> None:
    experiment = submit("dqn")
    start("learner")
    reaches(experiment, "starting")
    Experiments(store).order(experiment, "stop")
    reaches(experiment, "stopped")
    assert "replay shard 0 did not serve" in Experiments(store).status(experiment).reason


def test_an_experiment_that_waits_for_its_shard_and_is_to_pause_frees_its_learner(
    store: Store, start: Any, submit: Any, reaches: Any
) -> None:
    waiting = submit("dqn")
    start("learner")
    reaches(waiting, "starting")
    Experiments(store).order(waiting, "pause")
    reaches(waiting, "queued")
    reaches(submit("ppo"), "running")


def test_an_experiment_that_starts_slowly_keeps_its_lease(store: Store, start: Any, submit: Any, reaches: Any) -> None:
    experiment = submit("dqn")
    start("learner", lease_ttl_s=1.0)
    reaches(experiment, "starting")
    clock = SystemClock()
    deadline = Deadline(clock, after_s=3.0)
    while not deadline.passed():
        assert Lease.owner_of(store, key=keys.experiment_lease(experiment)) == "learner-0"
        clock.sleep(0.05)
