"""The book of experiments: spec, phase, orders, counters, and the journals of reports, events and faults.

    submit ─▶ queued ─▶ starting ─▶ running ⇄ paused ─▶ succeeded | failed | stopped

The end of an experiment is one field that is written once (`HSETNX`): whoever ends it first has the last word, and no slow or
forgotten process can bring it back. Counters only grow. A learner passes its lease with what it writes, so that one which lost
the experiment to another is refused (`LeaseLost`) instead of writing into the other's history.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias, cast

import msgspec
import redis

from rollstream.config import FINAL_PHASES, ExperimentSpec, Phase
from rollstream.errors import ConfigError
from rollstream.store import keys
from rollstream.store.changes import add_change
from rollstream.store.connection import Store
from rollstream.store.faults import Fault
from rollstream.store.journal import Journal
from rollstream.store.lease import Lease

__all__ = ["ExperimentStatus", "Experiments", "Order"]

Order: TypeAlias = Literal["run", "pause", "stop", "checkpoint"]
Records: TypeAlias = list[tuple[str, dict[str, Any]]]

_KEPT_REPORTS = 20_000
_KEPT_EVENTS = 2_000
_KEPT_FAULTS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentStatus:
    """Where an experiment stands.

    Attributes:
        reason: why it is in this phase, in words a person can act on; never empty when it failed.
        detail: more of it, e.g. the user's traceback.
        submitted_s, started_s, ended_s: seconds since 1970; None: not yet. `started_s` is when it first ran.
        learner: member id of the learner that has or had it; empty before.
        checkpoints_ordered: how many extra checkpoints people have asked for so far; the learner compares with what it has made.
        summary: results, once it ended.
    """

    id: str
    phase: Phase
    reason: str = ""
    detail: str = ""
    submitted_s: float = 0.0
    started_s: float | None = None
    ended_s: float | None = None
    learner: str = ""
    checkpoints_ordered: int = 0
    summary: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ended(self) -> bool:
        return self.phase in FINAL_PHASES


class Experiments:
    """All experiments of a cell. Every method raises `ConfigError` for an id that was never submitted."""

    def __init__(self, store: Store) -> None:
        self._store = store

    # -- submission

    def submit(self, experiment_id: str, spec: ExperimentSpec) -> None:
        """Enter the experiment into the queue. Safe to repeat with the same spec.

        Raises:
            ConfigError: the id is taken by another spec.
        """
        text = spec.model_dump_json().encode()

        def operation(client: redis.Redis) -> None:
            with client.pipeline(transaction=True) as pipeline:
                pipeline.watch(keys.experiments(), keys.experiment_spec(experiment_id))  # type: ignore[no-untyped-call]
                known: Any = pipeline.get(keys.experiment_spec(experiment_id))
                if known is not None:
                    if ExperimentSpec.model_validate_json(known) != spec:
                        raise ConfigError(f"experiment {experiment_id} exists with another spec; submit this one under a new id")
                    return
                number = int(pipeline.zcard(keys.experiments())) + 1
                pipeline.multi()
                pipeline.set(keys.experiment_spec(experiment_id), text)
                pipeline.set(keys.experiment_wanted(experiment_id), "run")
                fields = {"phase": "queued", "submitted_s": self._store.clock.wall_s()}
                pipeline.hset(keys.experiment_status(experiment_id), mapping=_encoded(fields))
                pipeline.zadd(keys.experiments(), {experiment_id: number})
                pipeline.zadd(keys.experiments_open(), {experiment_id: number})
                self._add_event(pipeline, experiment_id, "phase", "queued", {"phase": "queued"})
                pipeline.execute()

        self._store.run("submit an experiment", operation)

    def spec(self, experiment_id: str) -> ExperimentSpec:
        """The spec as it was submitted."""

        def operation(client: redis.Redis) -> Any:
            return client.get(keys.experiment_spec(experiment_id))

        text = self._store.run("read an experiment's spec", operation)
        if text is None:
            raise _unknown(experiment_id)
        return ExperimentSpec.model_validate_json(text)

    def exists(self, experiment_id: str) -> bool:
        """Whether the id was ever submitted."""

        def operation(client: redis.Redis) -> Any:
            return client.exists(keys.experiment_spec(experiment_id))

        return bool(self._store.run("look for an experiment", operation))

    def ids(self) -> list[str]:
        """All experiments, in order of submission."""
        return self._ids(keys.experiments())

    def open_ids(self) -> list[str]:
        """Those that have not ended, in order of submission."""
        return self._ids(keys.experiments_open())

    def _ids(self, key: str) -> list[str]:
        def operation(client: redis.Redis) -> Any:
            return client.zrange(key, 0, -1)

        return [experiment_id.decode() for experiment_id in self._store.run("list the experiments", operation)]

    # -- phase

    def status(self, experiment_id: str) -> ExperimentStatus:
        """Where the experiment stands."""

        def operation(client: redis.Redis) -> Any:
            return client.hgetall(keys.experiment_status(experiment_id))

        stored = self._store.run("read an experiment's status", operation)
        if not stored:
            raise _unknown(experiment_id)
        fields = {name.decode(): msgspec.json.decode(text) for name, text in stored.items()}
        fields |= fields.pop("end", {})
        return ExperimentStatus(id=experiment_id, **fields)

    def set_phase(
        self,
        experiment_id: str,
        phase: Phase,
        *,
        reason: str = "",
        detail: str = "",
        learner: str | None = None,
        lease: Lease | None = None,
    ) -> bool:
        """Move the experiment to another phase, tell it as an event, and wake the cell. Safe to repeat.

        Args:
            reason: why, in words a person can act on; required for `failed`.
            learner: member id of the learner that has it; None leaves what is there.
            lease: of the learner that calls; None for control.

        Returns:
            Whether the experiment is in this phase now. False: it had ended in another, which it never leaves.

        Raises:
            LeaseLost: another learner has the experiment.
        """
        if phase == "failed" and not reason.strip():
            raise ConfigError(f"phase failed of {experiment_id} needs a reason that a person can act on")
        before = self.status(experiment_id)
        if before.ended:
            return before.phase == phase
        fields: dict[str, Any] = {"learner": learner} if learner is not None else {}

        def fill(pipeline: redis.client.Pipeline) -> None:
            key = keys.experiment_status(experiment_id)
            told = {"phase": phase, "reason": reason, "detail": detail}
            if phase in FINAL_PHASES:
                end = told | {"ended_s": self._store.clock.wall_s()}
                pipeline.hsetnx(key, "end", msgspec.json.encode(end))
                pipeline.zrem(keys.experiments_open(), experiment_id)
            else:
                fields.update(told)
            if phase == "running":
                pipeline.hsetnx(key, "started_s", msgspec.json.encode(self._store.clock.wall_s()))
            if fields:
                pipeline.hset(key, mapping=_encoded(fields))
            self._add_event(pipeline, experiment_id, "phase", f"{phase}: {reason}" if reason else phase, told)

        self._write("set an experiment's phase", fill, lease)
        return phase not in FINAL_PHASES or self.status(experiment_id).phase == phase

    def set_summary(self, experiment_id: str, summary: Mapping[str, Any], *, lease: Lease | None = None) -> None:
        """Store the results."""

        def fill(pipeline: redis.client.Pipeline) -> None:
            pipeline.hset(keys.experiment_status(experiment_id), mapping=_encoded({"summary": summary}))

        self._write("store an experiment's summary", fill, lease)

    # -- orders

    def order(self, experiment_id: str, order: Order) -> None:
        """Say what people want of the experiment; its learner acts on it. Safe to repeat.

        `checkpoint` asks for one more checkpoint; it shows in `ExperimentStatus.checkpoints_ordered`.

        Raises:
            ConfigError: the experiment has ended or was told to stop, and the order is not `stop`.
        """
        status = self.status(experiment_id)
        if order != "stop" and (status.ended or self.wanted(experiment_id) == "stop"):
            state = status.phase if status.ended else "stopping"
            raise ConfigError(f"experiment {experiment_id} is {state}: it cannot {order}; submit it again from its checkpoint")
        if status.ended:
            return

        def fill(pipeline: redis.client.Pipeline) -> None:
            if order == "checkpoint":
                pipeline.hincrby(keys.experiment_status(experiment_id), "checkpoints_ordered", 1)
            else:
                pipeline.set(keys.experiment_wanted(experiment_id), order)
            self._add_event(pipeline, experiment_id, "order", order, {"order": order})

        self._write("order an experiment", fill, None)

    def wanted(self, experiment_id: str) -> Literal["run", "pause", "stop"]:
        """What people want of the experiment."""

        def operation(client: redis.Redis) -> Any:
            return client.get(keys.experiment_wanted(experiment_id))

        text = self._store.run("read what is wanted of an experiment", operation)
        if text is None:
            raise _unknown(experiment_id)
        return cast(Literal["run", "pause", "stop"], text.decode())

    # -- journals

    def add_report(self, experiment_id: str, report: Mapping[str, Any], *, lease: Lease | None = None) -> None:
        """Append a report."""
        journal = self._reports(experiment_id)
        self._write("add a report", lambda pipeline: journal.add_to(pipeline, report), lease)

    def reports(self, experiment_id: str, *, after: str = "0", limit: int = 1_000) -> Records:
        """Reports younger than the entry `after`, oldest first, each with its id."""
        return self._reports(experiment_id).after(after, limit=limit)

    def newest_report(self, experiment_id: str) -> tuple[str, dict[str, Any]] | None:
        """The last report and its id; None before the first."""
        return self._reports(experiment_id).newest()

    def wait_reports(self, experiment_id: str, after: str, *, timeout_s: float, limit: int = 1_000) -> Records:
        """As `reports`, waiting up to `timeout_s` for the first."""
        return self._reports(experiment_id).wait_after(after, limit=limit, timeout_s=timeout_s)

    def add_event(self, experiment_id: str, kind: str, message: str, **fields: Any) -> None:
        """Tell something worth knowing: `kind` for programs, `message` for people, and whatever else belongs to it."""
        self._write("add an event", lambda pipeline: self._add_event(pipeline, experiment_id, kind, message, fields), None)

    def events(self, experiment_id: str, *, after: str = "0", limit: int = 1_000) -> Records:
        """Events (`kind`, `message`, `wall_s`, ...) younger than the entry `after`, oldest first, each with its id."""
        return self._events(experiment_id).after(after, limit=limit)

    def wait_events(self, experiment_id: str, after: str, *, timeout_s: float, limit: int = 1_000) -> Records:
        """As `events`, waiting up to `timeout_s` for the first."""
        return self._events(experiment_id).wait_after(after, limit=limit, timeout_s=timeout_s)

    def add_fault(self, experiment_id: str, fault: Fault) -> None:
        """Report a fault in the user's code; wakes the learner, which ends the experiment when it is fatal."""

        def fill(pipeline: redis.client.Pipeline) -> None:
            self._faults(experiment_id).add_to(pipeline, asdict(fault))
            add_change(pipeline, "fault", experiment_id)

        self._write("report a fault", fill, None)

    def faults(self, experiment_id: str, *, after: str = "0", limit: int = 100) -> list[tuple[str, Fault]]:
        """Faults younger than the entry `after`, oldest first, each with its id."""
        records = self._faults(experiment_id).after(after, limit=limit)
        return [(entry_id, msgspec.convert(record, Fault)) for entry_id, record in records]

    # -- the flow

    def set_flow(self, experiment_id: str, flow: Mapping[str, Any], *, lease: Lease | None = None) -> None:
        """Store the flow's description (nodes and edges with rates, depth, waits); the newest replaces the one before."""
        text = msgspec.json.encode(flow)
        self._write("store a flow", lambda pipeline: pipeline.set(keys.experiment_flow(experiment_id), text), lease)

    def flow(self, experiment_id: str) -> dict[str, Any] | None:
        """The flow's description; None until a learner has built it."""

        def operation(client: redis.Redis) -> Any:
            return client.get(keys.experiment_flow(experiment_id))

        text = self._store.run("read a flow", operation)
        return None if text is None else msgspec.json.decode(text)

    # -- counters

    def save_counters(self, experiment_id: str, counters: Mapping[str, int], *, lease: Lease | None = None) -> None:
        """Store counters; of the stored and the given value the larger one stays, so that none ever runs backwards.

        One process at a time saves: the learner that holds the lease.
        """
        key = keys.experiment_counters(experiment_id)
        known = self.counters(experiment_id)
        grown = {name: value for name, value in counters.items() if value > known.get(name, -1)}
        if grown:
            self._write("save counters", lambda pipeline: pipeline.hset(key, mapping=cast(Any, grown)), lease)

    def counters(self, experiment_id: str) -> dict[str, int]:
        """The stored counters by name."""

        def operation(client: redis.Redis) -> Any:
            return client.hgetall(keys.experiment_counters(experiment_id))

        reply = self._store.run("read counters", operation)
        return {name.decode(): int(value) for name, value in sorted(reply.items())}

    # -- how it is written

    def _write(self, what: str, fill: Callable[[redis.client.Pipeline], Any], lease: Lease | None) -> None:
        """Execute what `fill` puts on a transaction; under the lease, when there is one."""
        if lease is not None:
            lease.guarded(what, fill)
            return

        def operation(client: redis.Redis) -> None:
            with client.pipeline(transaction=True) as pipeline:
                fill(pipeline)
                pipeline.execute()

        self._store.run(what, operation)

    def _add_event(
        self, pipeline: redis.client.Pipeline, experiment_id: str, kind: str, message: str, fields: Mapping[str, Any]
    ) -> None:
        record = {"kind": kind, "message": message, "wall_s": self._store.clock.wall_s(), **fields}
        self._events(experiment_id).add_to(pipeline, record)
        add_change(pipeline, "experiment", experiment_id)

    def _reports(self, experiment_id: str) -> Journal:
        key = keys.experiment_reports(experiment_id)
        return Journal(self._store, what="reports", key=key, kept_entries=_KEPT_REPORTS)

    def _events(self, experiment_id: str) -> Journal:
        key = keys.experiment_events(experiment_id)
        return Journal(self._store, what="events", key=key, kept_entries=_KEPT_EVENTS)

    def _faults(self, experiment_id: str) -> Journal:
        key = keys.experiment_faults(experiment_id)
        return Journal(self._store, what="faults", key=key, kept_entries=_KEPT_FAULTS)


def _encoded(fields: Mapping[str, Any]) -> dict[Any, Any]:
    return {name: msgspec.json.encode(value) for name, value in fields.items()}


def _unknown(experiment_id: str) -> ConfigError:
    return ConfigError(f"there is no experiment {experiment_id!r}; `rollstream status` lists those that there are")
