"""The scheduler on a real server: who serves what, as members and experiments come and go."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import structlog

from rollstream.clock import SystemClock
from rollstream.config import EnvironmentSpec, ExperimentSpec
from rollstream.store import Address, Assignments, Experiments, Lease, MemberRecord, Members, Store, keys
from rollstream_control.scheduling.scheduler import Scheduler
from rollstream_service.health import Health
from rollstream_service.lifecycle import Life


def make_scheduler(address: Address, member: str, **hooks: Any) -> Scheduler:
    clock = SystemClock()
    life = Life(role="control", member=member, clock=clock, health=Health(clock), log=structlog.get_logger("test"))
    return Scheduler(address, life=life, **hooks)


@pytest.fixture
def scheduler(store: Store, address: Address) -> Scheduler:
    return make_scheduler(address, "control-0")


@pytest.fixture
def run(store: Store) -> Callable[..., str]:
    """`run("a", weight=2.0)` submits an experiment and lets it run; returns its id."""

    def submit(name: str, *, phase: Any = "running", **fields: Any) -> str:
        spec = ExperimentSpec(name=name, algorithm="ppo", environment=EnvironmentSpec(id="CartPole-v1"), **fields)
        experiment = f"{name}-000000"
        Experiments(store).submit(experiment, spec)
        if phase != "queued":
            Experiments(store).set_phase(experiment, phase)
        return experiment

    return submit


@pytest.fixture
def join(store: Store) -> Callable[..., None]:
    """`join("actor-0", "learner-0")` announces members; a learner may be busy: `learner-0=a-000000`."""

    def announce(*names: str) -> None:
        for entry in names:
            name, _, doing = entry.partition("=")
            role: Any = name.split("-")[0]
            Members(store).announce(MemberRecord(id=name, role=role, doing=doing), ttl_s=60.0)

    return announce


def seats(store: Store) -> dict[str, tuple[str, int]]:
    return {actor: (entry.experiment, entry.ordinal) for actor, entry in Assignments(store).all().items()}


def test_live_actors_serve_the_running_experiment(scheduler: Scheduler, store: Store, run: Any, join: Any) -> None:
    experiment = run("a", actors=2)
    join("actor-0", "actor-1", "actor-2", f"learner-0={experiment}")
    scheduler.turn()
    assert seats(store) == {"actor-0": (experiment, 0), "actor-1": (experiment, 1)}


def test_actors_are_shared_by_weight(scheduler: Scheduler, store: Store, run: Any, join: Any) -> None:
    light, heavy = run("light", actors=9), run("heavy", actors=9, weight=3.0)
    join(*(f"actor-{n}" for n in range(8)))
    scheduler.turn()
    served = [experiment for experiment, _ in seats(store).values()]
    assert (served.count(light), served.count(heavy)) == (2, 6)


def test_an_actor_that_left_is_replaced_and_the_others_do_not_move(
    scheduler: Scheduler, store: Store, run: Any, join: Any
) -> None:
    experiment = run("a", actors=3)
    join("actor-0", "actor-1", "actor-2")
    scheduler.turn()
    before = Assignments(store).all()
    Members(store).leave("actor-1")
    scheduler.turn()
    assert seats(store) == {"actor-0": (experiment, 0), "actor-2": (experiment, 2)}
    join("actor-7")
    scheduler.turn()
    after = Assignments(store).all()
    assert seats(store)["actor-7"] == (experiment, 1)
    assert {actor: after[actor] for actor in ("actor-0", "actor-2")} == {actor: before[actor] for actor in ("actor-0", "actor-2")}
    assert after["actor-7"].generation > max(entry.generation for entry in before.values())


def test_pausing_gives_the_actors_back_and_resuming_takes_them_again_as_a_new_generation(
    scheduler: Scheduler, store: Store, run: Any, join: Any
) -> None:
    experiment = run("a", actors=1)
    join("actor-0")
    scheduler.turn()
    first = Assignments(store).get("actor-0")
    Experiments(store).order(experiment, "pause")
    scheduler.turn()
    assert seats(store) == {}
    Experiments(store).order(experiment, "run")
    scheduler.turn()
    second = Assignments(store).get("actor-0")
    assert first is not None
    assert second is not None
    assert (second.ordinal, second.generation > first.generation) == (0, True)


def test_when_an_experiment_ends_its_actors_go_to_the_next(scheduler: Scheduler, store: Store, run: Any, join: Any) -> None:
    first, second = run("first", actors=2), run("second", phase="queued", actors=2)
    join("actor-0", "actor-1", f"learner-0={first}")
    scheduler.turn()
    assert {experiment for experiment, _ in seats(store).values()} == {first}
    Experiments(store).set_phase(first, "succeeded")
    join("learner-0")
    scheduler.turn()
    assert seats(store) == {"actor-0": (second, 0), "actor-1": (second, 1)}


def test_a_turn_without_any_change_writes_nothing(scheduler: Scheduler, store: Store, run: Any, join: Any) -> None:
    run("a")
    join("actor-0")
    scheduler.turn()
    before = store.client.xlen(keys.changes())
    scheduler.turn()
    scheduler.turn(changed=False)
    assert store.client.xlen(keys.changes()) == before


def test_a_member_whose_record_expired_is_noticed_without_any_wake_up(
    scheduler: Scheduler, store: Store, run: Any, join: Any
) -> None:
    experiment = run("a", actors=1)
    join("actor-0", "actor-1")
    scheduler.turn()
    store.client.delete(keys.member("actor-0"))  # as the server does when a record expires
    scheduler.turn(changed=False)
    assert seats(store) == {"actor-1": (experiment, 0)}


def test_only_one_control_schedules_and_another_takes_over(store: Store, address: Address, run: Any, join: Any) -> None:
    first, second = make_scheduler(address, "control-0"), make_scheduler(address, "control-1")
    first.turn()
    second.turn()
    assert (first.scheduling, second.scheduling) == (True, False)
    experiment = run("a")
    join("actor-0")
    second.turn()
    assert seats(store) == {}
    store.client.delete(keys.control_lease())  # the first was killed, and its lease ran out
    second.turn()
    assert (second.scheduling, seats(store)) == (True, {"actor-0": (experiment, 0)})
    first.turn()
    assert not first.scheduling


def test_a_control_that_takes_over_moves_nobody_and_counts_generations_on(
    store: Store, address: Address, run: Any, join: Any
) -> None:
    run("a", actors=3)
    join("actor-0", "actor-1")
    make_scheduler(address, "control-0").turn()
    before = Assignments(store).all()
    store.client.delete(keys.control_lease())
    join("actor-2")
    make_scheduler(address, "control-1").turn()
    after = Assignments(store).all()
    assert {actor: after[actor] for actor in before} == before
    assert after["actor-2"].generation > max(entry.generation for entry in before.values())


def test_a_stopped_experiment_whose_learner_has_gone_is_ended_once_its_lease_is_free(
    scheduler: Scheduler, store: Store, run: Any
) -> None:
    experiment = run("a")
    lease = Lease.acquire(
        store, key=keys.experiment_lease(experiment), token_key=keys.experiment_token(experiment), owner="learner-0", ttl_s=60.0
    )
    assert lease is not None
    Experiments(store).order(experiment, "stop")
    scheduler.turn()
    assert Experiments(store).status(experiment).phase == "running"  # its learner may be writing the last checkpoint
    lease.release()
    scheduler.turn()
    status = Experiments(store).status(experiment)
    assert (status.phase, status.reason) == ("stopped", "stopped by order after its learner had gone")


def test_a_stopped_experiment_is_left_to_an_idle_learner(scheduler: Scheduler, store: Store, run: Any, join: Any) -> None:
    experiment = run("a")
    join("learner-0")
    Experiments(store).order(experiment, "stop")
    scheduler.turn()
    assert Experiments(store).status(experiment).phase == "running"


def test_an_experiment_that_is_paused_in_the_queue_needs_no_learner_and_queues_again_when_it_is_resumed(
    scheduler: Scheduler, store: Store, run: Any, join: Any
) -> None:
    experiments = Experiments(store)
    first, second = run("first", phase="queued", actors=1), run("second", phase="queued", actors=1)
    join("actor-0", "learner-0")
    experiments.order(first, "pause")
    scheduler.turn()
    status = experiments.status(first)
    assert (status.phase, status.reason) == ("paused", "paused by order before a learner began")
    assert seats(store) == {"actor-0": (second, 0)}
    experiments.order(first, "run")
    scheduler.turn()
    status = experiments.status(first)
    assert (status.phase, status.reason) == ("queued", "resumed by order; a learner goes on from its checkpoint")


def test_an_experiment_that_a_learner_has_is_left_to_it(scheduler: Scheduler, store: Store, run: Any) -> None:
    experiment = run("a")
    lease = Lease.acquire(
        store, key=keys.experiment_lease(experiment), token_key=keys.experiment_token(experiment), owner="learner-0", ttl_s=60.0
    )
    assert lease is not None
    Experiments(store).order(experiment, "pause")
    scheduler.turn()
    assert Experiments(store).status(experiment).phase == "running"
    lease.release()  # it died, and its lease ran out
    scheduler.turn(changed=False)
    status = Experiments(store).status(experiment)
    assert (status.phase, status.reason) == ("paused", "paused by order after its learner had gone")


def test_the_thread_assigns_as_soon_as_something_changes(
    store: Store, address: Address, run: Any, join: Any, eventually: Any
) -> None:
    looks: list[int] = []
    scheduler = make_scheduler(address, "control-0", on_look=lambda members, phases: looks.append(len(members)))
    scheduler.start()
    try:
        experiment = run("a", actors=2)
        join("actor-0")
        eventually(lambda: seats(store) == {"actor-0": (experiment, 0)})
        Members(store).leave("actor-0")
        eventually(lambda: seats(store) == {})
    finally:
        scheduler._life.stopping.set()
        scheduler.stop()
    assert looks
    assert store.client.get(keys.control_lease()) is None  # given back: the next control need not wait
