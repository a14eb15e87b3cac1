"""Learners, replay shards and actors in threads of the test process, on a real server."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest
import structlog

from rollstream.clock import Deadline, SystemClock
from rollstream.config import ExperimentSpec
from rollstream.store import Address, Experiments, Store
from rollstream_actor.settings import ActorSettings
from rollstream_actor.wiring import main as actor_main
from rollstream_learner.settings import LearnerSettings
from rollstream_learner.wiring import main as learner_main
from rollstream_replay.settings import ReplaySettings
from rollstream_replay.wiring import main as replay_main
from rollstream_service.health import Health
from rollstream_service.lifecycle import Life

GRACE_S = 2.0
WITHIN_S = 90.0


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


class Start(Protocol):
    """`start("learner")`, `start("replay")`, `start("actor")`: number 0 of the role; ends with the test, if not before."""

    def __call__(self, role: str, **settings: Any) -> Service: ...


class Until(Protocol):
    """`until(look)` calls `look` until it gives something true; `told()` says in the failure how things stand."""

    def __call__(self, look: Callable[[], Any], told: Callable[[], object] = ...) -> None: ...


@pytest.fixture
def start(address: Address, store: Store, tmp_path: Path) -> Iterator[Start]:
    """See `Start`."""
    started: list[Service] = []

    def service(role: str, **settings: Any) -> Service:
        common = {"redis_url": str(address), "member_id": f"{role}-0", "grace_s": GRACE_S, **settings}
        mains: dict[str, Callable[[], Service]] = {
            "learner": lambda: Service(role, learner_main, LearnerSettings(runs_dir=tmp_path, **common)),
            "replay": lambda: Service(role, replay_main, ReplaySettings(**common)),
            "actor": lambda: Service(role, actor_main, ActorSettings(**common)),
        }
        started.append(mains[role]())
        return started[-1]

    yield service
    for running in reversed(started):  # actors before what they write to
        running.stop()


@pytest.fixture
def submit(store: Store) -> Callable[..., str]:
    """`submit("ppo")` enters an experiment into the queue and returns its id."""

    def enter(algorithm: str, *, number: int = 1) -> str:
        experiment = f"{algorithm}-{number:06x}"
        spec = {"name": algorithm, "algorithm": algorithm, "environment": {"id": "CartPole-v1"}, "evaluation_episodes": 0}
        Experiments(store).submit(experiment, ExperimentSpec.model_validate(spec))
        return experiment

    return enter


@pytest.fixture
def until() -> Until:
    """See `Until`."""

    def wait(look: Callable[[], Any], told: Callable[[], object] = lambda: "") -> None:
        clock = SystemClock()
        deadline = Deadline(clock, after_s=WITHIN_S)
        while not look():
            assert not deadline.passed(), f"it never came true; {told()}"
            clock.sleep(0.05)

    return wait


@pytest.fixture
def reaches(store: Store, until: Until) -> Callable[[str, str], None]:
    """`reaches(experiment, "running")` waits for a phase."""
    experiments = Experiments(store)

    def wait(experiment: str, phase: str) -> None:
        until(lambda: experiments.status(experiment).phase == phase, lambda: (phase, experiments.status(experiment)))

    return wait
