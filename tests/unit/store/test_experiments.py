"""The book of experiments."""

from __future__ import annotations

import pytest

from rollstream.config import EnvironmentSpec, ExperimentSpec
from rollstream.errors import ConfigError, LeaseLost
from rollstream.store import Store
from rollstream.store.changes import Changes
from rollstream.store.experiments import Experiments
from rollstream.store.faults import Fault, FaultPlace
from rollstream.store.lease import Lease

SPEC = ExperimentSpec(algorithm="ppo", environment=EnvironmentSpec(id="CartPole-v1"), settings={"gamma": 0.99})
ID = "experiment-abc123"


@pytest.fixture
def experiments(store: Store) -> Experiments:
    return Experiments(store)


@pytest.fixture
def submitted(experiments: Experiments) -> Experiments:
    experiments.submit(ID, SPEC)
    return experiments


def test_a_submitted_experiment_is_queued_with_its_spec(submitted: Experiments) -> None:
    status = submitted.status(ID)
    assert (status.phase, status.started_s, status.ended_s, status.ended) == ("queued", None, None, False)
    assert status.submitted_s > 1e9
    assert submitted.spec(ID) == SPEC
    assert submitted.wanted(ID) == "run"
    assert submitted.exists(ID)


def test_experiments_are_listed_in_the_order_of_their_submission(experiments: Experiments) -> None:
    for experiment_id in ("z-1", "a-2", "m-3"):
        experiments.submit(experiment_id, SPEC)
    experiments.set_phase("a-2", "stopped")
    assert experiments.ids() == ["z-1", "a-2", "m-3"]
    assert experiments.open_ids() == ["z-1", "m-3"]


def test_submitting_again_changes_nothing(submitted: Experiments) -> None:
    submitted.set_phase(ID, "running")
    submitted.order(ID, "pause")
    submitted.submit(ID, SPEC)
    assert submitted.status(ID).phase == "running"
    assert submitted.wanted(ID) == "pause"
    assert submitted.ids() == [ID]


def test_an_id_is_not_given_to_a_second_spec(submitted: Experiments) -> None:
    with pytest.raises(ConfigError, match="experiment-abc123 exists with another spec; submit this one under a new id"):
        submitted.submit(ID, SPEC.model_copy(update={"seed": 2}))


@pytest.mark.parametrize("ask", ["spec", "status", "wanted"])
def test_an_unknown_experiment_is_named(experiments: Experiments, ask: str) -> None:
    with pytest.raises(ConfigError, match="there is no experiment 'gone-1'; `rollstream status` lists"):
        getattr(experiments, ask)("gone-1")
    assert not experiments.exists("gone-1")


def test_phases_are_told_as_events_with_their_reason(submitted: Experiments) -> None:
    assert submitted.set_phase(ID, "starting", learner="learner-0")
    assert submitted.set_phase(ID, "running")
    assert submitted.set_phase(ID, "succeeded", reason="mean return 480.0 reached 475.0")
    told = [(event["kind"], event["message"]) for _, event in submitted.events(ID)]
    assert told == [
        ("phase", "queued"),
        ("phase", "starting"),
        ("phase", "running"),
        ("phase", "succeeded: mean return 480.0 reached 475.0"),
    ]
    status = submitted.status(ID)
    assert status.learner == "learner-0"
    assert status.started_s is not None
    assert status.ended_s is not None
    assert status.ended


def test_the_start_is_when_it_first_ran(submitted: Experiments) -> None:
    submitted.set_phase(ID, "running")
    started_s = submitted.status(ID).started_s
    submitted.set_phase(ID, "paused")
    submitted.set_phase(ID, "running")
    assert submitted.status(ID).started_s == started_s


def test_an_experiment_never_leaves_its_final_phase(submitted: Experiments) -> None:
    assert submitted.set_phase(ID, "failed", reason="the environment raised", detail="Traceback ...")
    assert not submitted.set_phase(ID, "running")
    assert not submitted.set_phase(ID, "succeeded")
    assert submitted.set_phase(ID, "failed", reason="another reason, later")
    status = submitted.status(ID)
    assert (status.phase, status.reason, status.detail) == ("failed", "the environment raised", "Traceback ...")
    assert submitted.open_ids() == []


def test_a_late_writer_cannot_bring_an_ended_experiment_back(submitted: Experiments, store: Store) -> None:
    """It looked before the end, and writes after it."""
    submitted.set_phase(ID, "stopped")
    store.client.hset(f"rs:exp:{ID}:status", "phase", '"running"')
    assert submitted.status(ID).phase == "stopped"


def test_failing_needs_a_reason(submitted: Experiments) -> None:
    with pytest.raises(ConfigError, match="needs a reason that a person can act on"):
        submitted.set_phase(ID, "failed", reason=" ")


def test_orders_are_safe_to_repeat(submitted: Experiments) -> None:
    for _ in range(2):
        submitted.order(ID, "pause")
    assert submitted.wanted(ID) == "pause"
    submitted.order(ID, "run")
    for _ in range(2):
        submitted.order(ID, "stop")
    assert submitted.wanted(ID) == "stop"
    submitted.set_phase(ID, "stopped")
    submitted.order(ID, "stop")


def test_a_checkpoint_is_ordered_without_changing_what_is_wanted(submitted: Experiments) -> None:
    submitted.order(ID, "checkpoint")
    submitted.order(ID, "checkpoint")
    assert submitted.status(ID).checkpoints_ordered == 2
    assert submitted.wanted(ID) == "run"


def test_what_was_told_to_stop_cannot_go_on(submitted: Experiments) -> None:
    submitted.order(ID, "stop")
    with pytest.raises(ConfigError, match="is stopping: it cannot run; submit it again from its checkpoint"):
        submitted.order(ID, "run")
    submitted.set_phase(ID, "stopped")
    with pytest.raises(ConfigError, match="is stopped: it cannot pause"):
        submitted.order(ID, "pause")


def test_orders_and_phases_wake_the_cell(submitted: Experiments, store: Store) -> None:
    changes = Changes(store)
    seen = changes.latest()
    submitted.order(ID, "pause")
    ordered = changes.wait(seen, timeout_s=0.0)
    assert ordered != seen
    submitted.set_phase(ID, "paused")
    assert changes.wait(ordered, timeout_s=0.0) != ordered


def test_reports_are_read_back_and_have_no_nan(submitted: Experiments) -> None:
    assert submitted.newest_report(ID) is None
    submitted.add_report(ID, {"env_steps": 100, "mean_return": float("nan")})
    submitted.add_report(ID, {"env_steps": 200, "mean_return": 21.5})
    assert [report for _, report in submitted.reports(ID)] == [
        {"env_steps": 100, "mean_return": None},
        {"env_steps": 200, "mean_return": 21.5},
    ]
    newest = submitted.newest_report(ID)
    assert newest is not None
    assert newest[1]["env_steps"] == 200
    first_id = submitted.reports(ID, limit=1)[0][0]
    assert submitted.wait_reports(ID, first_id, timeout_s=0.0) == [newest]


def test_events_carry_fields_for_programs(submitted: Experiments) -> None:
    submitted.add_event(ID, "checkpoint", "checkpoint 3 written", number=3)
    (_, queued), (entry_id, event) = submitted.events(ID)
    assert event.pop("wall_s") > 1e9
    assert event == {"kind": "checkpoint", "message": "checkpoint 3 written", "number": 3}
    assert queued["phase"] == "queued"
    assert submitted.wait_events(ID, entry_id, timeout_s=0.01) == []


def test_a_fault_arrives_as_it_was_sent_and_wakes_the_learner(submitted: Experiments, store: Store) -> None:
    fault = Fault(
        kind="flow",
        actor="actor-1",
        where=FaultPlace(operator="advantages", file="algorithms/ppo/flow.py", line=31),
        message="ValueError: bad shape",
        traceback="Traceback (most recent call last):\n  ...\nValueError: bad shape\n",
        fatal=False,
    )
    changes = Changes(store)
    seen = changes.latest()
    submitted.add_fault(ID, fault)
    assert changes.wait(seen, timeout_s=0.0) != seen
    [(entry_id, received)] = submitted.faults(ID)
    assert received == fault
    assert submitted.faults(ID, after=entry_id) == []


def test_stored_counters_never_run_backwards(submitted: Experiments) -> None:
    submitted.save_counters(ID, {"env_steps_sampled": 100, "updates": 5})
    submitted.save_counters(ID, {"env_steps_sampled": 90, "updates": 6, "episodes": 0})
    assert submitted.counters(ID) == {"env_steps_sampled": 100, "episodes": 0, "updates": 6}


def test_the_summary_is_stored_with_the_status(submitted: Experiments) -> None:
    submitted.set_phase(ID, "succeeded")
    submitted.set_summary(ID, {"mean_return": 481.5, "env_steps": 1_000})
    status = submitted.status(ID)
    assert status.summary == {"mean_return": 481.5, "env_steps": 1_000}
    assert status.phase == "succeeded"


def test_a_learner_that_lost_the_experiment_writes_nothing_more(submitted: Experiments, store: Store) -> None:
    names = {"key": f"rs:exp:{ID}:lease", "token_key": f"rs:exp:{ID}:token"}
    lease = Lease.acquire(store, owner="learner-0", ttl_s=60.0, **names)
    assert lease is not None
    submitted.set_phase(ID, "running", lease=lease)
    submitted.add_report(ID, {"env_steps": 1}, lease=lease)
    submitted.save_counters(ID, {"updates": 1}, lease=lease)
    store.client.delete(names["key"])
    assert Lease.acquire(store, owner="learner-1", ttl_s=60.0, **names) is not None
    for write in (
        lambda: submitted.set_phase(ID, "failed", reason="late", lease=lease),
        lambda: submitted.add_report(ID, {"env_steps": 2}, lease=lease),
        lambda: submitted.save_counters(ID, {"updates": 9}, lease=lease),
        lambda: submitted.set_summary(ID, {"mean_return": 0.0}, lease=lease),
    ):
        with pytest.raises(LeaseLost, match="learner-1"):
            write()
    assert submitted.status(ID).phase == "running"
    assert len(submitted.reports(ID)) == 1
    assert submitted.counters(ID) == {"updates": 1}
