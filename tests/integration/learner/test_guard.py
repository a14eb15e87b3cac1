"""The guard beside a flow: orders, faults and lost leases end it, whenever they were told."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
import structlog

from rollstream.clock import Deadline, SystemClock
from rollstream.config import EnvironmentSpec, ExperimentSpec
from rollstream.store import Address, Lease, Store, keys
from rollstream.store.experiments import Experiments
from rollstream.store.faults import Fault
from rollstream_learner.guard import Guard
from rollstream_service.health import Health
from rollstream_service.lifecycle import Life

ID = "ppo-000001"
ENDS_WITHIN_S = 20.0


@pytest.fixture
def experiments(store: Store) -> Experiments:
    made = Experiments(store)
    made.submit(ID, ExperimentSpec(algorithm="ppo", environment=EnvironmentSpec(id="CartPole-v1")))
    return made


@pytest.fixture
def life() -> Life:
    clock = SystemClock()
    return Life(role="learner", member="learner-0", clock=clock, health=Health(clock), log=structlog.get_logger())


@pytest.fixture
def stop() -> threading.Event:
    """Set by the guard when the flow must end."""
    return threading.Event()


@pytest.fixture
def guard(experiments: Experiments, store: Store, address: Address, life: Life, stop: threading.Event) -> Iterator[Guard]:
    lease = Lease.acquire(store, key=keys.experiment_lease(ID), token_key=keys.experiment_token(ID), owner="learner-0", ttl_s=1.0)
    assert lease is not None
    made = Guard(address, life=life, experiment=ID, lease=lease, lease_ttl_s=1.0, stop=stop)
    yield made
    made.stop()


def fault(*, fatal: bool) -> Fault:
    return Fault(kind="environment", actor="actor-0", message="the simulator broke", traceback="Traceback: theirs", fatal=fatal)


def verdict_of(guard: Guard, stop: threading.Event) -> tuple[str, str, str]:
    assert stop.wait(ENDS_WITHIN_S)
    assert guard.verdict is not None
    return guard.verdict.kind, guard.verdict.reason, guard.verdict.detail


def test_a_fatal_fault_ends_the_experiment(guard: Guard, experiments: Experiments, stop: threading.Event) -> None:
    guard.start()
    experiments.add_fault(ID, fault(fatal=False))
    experiments.add_fault(ID, fault(fatal=True))
    assert verdict_of(guard, stop) == ("fault", "the simulator broke", "Traceback: theirs")


def test_a_fatal_fault_is_told_before_the_flow_has_ended(guard: Guard, experiments: Experiments, stop: threading.Event) -> None:
    guard.start()
    experiments.add_fault(ID, fault(fatal=True))
    deadline = Deadline(SystemClock(), after_s=ENDS_WITHIN_S)
    while not experiments.status(ID).ended and not deadline.passed():
        stop.wait(0.01)
    status = experiments.status(ID)
    assert (status.phase, status.reason, status.detail) == ("failed", "the simulator broke", "Traceback: theirs")


def test_a_fatal_fault_told_before_a_learner_was_there_counts(
    guard: Guard, experiments: Experiments, stop: threading.Event
) -> None:
    experiments.add_fault(ID, fault(fatal=True))
    guard.start()
    assert verdict_of(guard, stop) == ("fault", "the simulator broke", "Traceback: theirs")


def test_a_fault_that_was_survived_ends_nothing(guard: Guard, experiments: Experiments, stop: threading.Event) -> None:
    experiments.add_fault(ID, fault(fatal=False))
    guard.start()
    assert guard.verdict is None
    experiments.order(ID, "stop")
    assert verdict_of(guard, stop) == ("stop", "stopped by order", "")


def test_a_lease_that_another_learner_holds_ends_the_flow(guard: Guard, store: Store, stop: threading.Event) -> None:
    guard.start()
    store.run("steal the lease", lambda client: client.set(keys.experiment_lease(ID), "somebody else"))
    assert verdict_of(guard, stop)[0] == "lost"


def test_a_learner_that_is_told_to_stop_leaves(guard: Guard, life: Life, stop: threading.Event) -> None:
    life.stopping.set()
    guard.start()
    assert verdict_of(guard, stop)[0] == "leave"
