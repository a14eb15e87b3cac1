"""A replay shard that is away holds an experiment up; it does not fail it, and it does not keep a learner from leaving."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

from rollstream.clock import Deadline, SystemClock
from rollstream.config import ExperimentSpec
from rollstream.store import Address, Experiments, Store
from rollstream_learner.settings import LearnerSettings
from rollstream_learner.wiring import main as learner_main
from rollstream_replay.settings import ReplaySettings
from rollstream_replay.wiring import main as replay_main
from rollstream_service.health import Health
from rollstream_service.lifecycle import Life

EXPERIMENT = "away-abc123"
GRACE_S = 2.0


class Service:
    """A service's main function in a thread."""

    def __init__(self, role: str, main: Callable[[Any, Life], None], settings: Any) -> None:
        clock = SystemClock()
        log = structlog.get_logger("rollstream")
        self.life = Life(role=role, member=settings.member_id, clock=clock, health=Health(clock), log=log)
        self._thread = threading.Thread(target=main, args=(settings, self.life), name=role)
        self._thread.start()

    def stop(self) -> None:
        self.life.stopping.set()
        self._thread.join(timeout=60)
        assert not self._thread.is_alive()


@pytest.fixture
def experiments(store: Store) -> Experiments:
    made = Experiments(store)
    spec = {"name": "away", "algorithm": "dqn", "environment": {"id": "CartPole-v1"}}
    made.submit(EXPERIMENT, ExperimentSpec.model_validate(spec))
    return made


@pytest.fixture
def learner(experiments: Experiments, address: Address, tmp_path: Path) -> Iterator[Service]:
    settings = LearnerSettings(redis_url=str(address), member_id="learner-0", runs_dir=tmp_path, grace_s=GRACE_S)
    service = Service("learner", learner_main, settings)
    yield service
    service.stop()


def start_replay(address: Address) -> Service:
    return Service("replay", replay_main, ReplaySettings(redis_url=str(address), member_id="replay-0", grace_s=GRACE_S))


def wait_for_phase(experiments: Experiments, phase: str) -> None:
    deadline = Deadline(SystemClock(), after_s=90.0)
    while (status := experiments.status(EXPERIMENT)).phase != phase:
        assert not deadline.passed(), f"{status.phase} ({status.reason}), not {phase}"
        SystemClock().sleep(0.05)


def test_an_experiment_waits_for_its_shard_and_outlives_it(experiments: Experiments, learner: Service, address: Address) -> None:
    wait_for_phase(experiments, "starting")
    SystemClock().sleep(3.0)  # longer than one look
    assert experiments.status(EXPERIMENT).phase == "starting"
    shard = start_replay(address)
    try:
        wait_for_phase(experiments, "running")
    finally:
        shard.stop()
    learner.stop()
    status = experiments.status(EXPERIMENT)
    assert status.phase == "queued", status.reason


def test_an_experiment_that_waits_for_its_shard_can_be_stopped(experiments: Experiments, learner: Service) -> None:
    wait_for_phase(experiments, "starting")
    experiments.order(EXPERIMENT, "stop")
    wait_for_phase(experiments, "stopped")
    assert "replay shard 0 did not serve" in experiments.status(EXPERIMENT).reason
