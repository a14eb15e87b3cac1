"""Composition root of the actor: probes, heartbeat, watch, and the loop that serves one assignment after another."""

from __future__ import annotations

from rollstream.errors import DeadlineExceeded, StoreError
from rollstream.flow import describe_error
from rollstream.metrics import Counters, Exposition, Waits, counters_source, render, waits_source
from rollstream.store import Address, Store
from rollstream.store.assignments import Assignment
from rollstream.store.experiments import Experiments
from rollstream.store.faults import Fault, FaultPlace
from rollstream.store.members import MemberRecord
from rollstream_actor.settings import ActorSettings
from rollstream_actor.watch import Watch
from rollstream_actor.work import Work, is_environment_fault
from rollstream_service.heartbeat import Heartbeat, member_record
from rollstream_service.lifecycle import Life
from rollstream_service.probes import ProbeServer

__all__ = ["main"]

WORK_WITHIN_S = 600.0
"""A rollout, with the environment's slowest steps, must end within this time; otherwise liveness says that it is stuck."""
FORGIVEN_ROLLOUTS = 100
"""Rollouts after which earlier failures of the environment are forgiven."""


def main(settings: ActorSettings, life: Life) -> None:
    """Serve assignments until told to stop."""
    Actor(settings, life).run()


class Actor:
    """One actor process."""

    def __init__(self, settings: ActorSettings, life: Life) -> None:
        self._settings = settings
        self._life = life
        self._address: Address = settings.address()
        self._store = Store(self._address, clock=life.clock, deadline_s=settings.redis_deadline_s, name=life.member)
        self._experiments = Experiments(self._store)
        self._counters = Counters()
        self._waits = Waits(clock=life.clock)
        self._doing = ""
        self._work: Work | None = None

    def run(self) -> None:
        life, settings = self._life, self._settings
        self._store.check()
        registry = Exposition(counters_source(self._counters), waits_source(self._waits), life.health.samples).registry()
        probes = ProbeServer(host=settings.host, port=settings.port, health=life.health, metrics=lambda: render(registry))
        url = settings.url(probes.port)
        watch = Watch(self._address, life=life)
        heartbeat = Heartbeat(self._address, life=life, record=lambda: self._record(url), each_beat=self._waits.check)
        probes.start()
        heartbeat.start()
        watch.start()
        life.log.info("ready", url=url)
        try:
            while not life.stopping.is_set():
                assignment = watch.assignment
                if assignment is None:
                    watch.wait(other_than=None)
                    continue
                self._doing = assignment.experiment
                heartbeat.now()
                self._serve(assignment, watch)
                self._doing = ""
        finally:
            life.stopping.set()
            watch.stop()
            heartbeat.stop()
            probes.stop()
            self._store.close()

    def _record(self, url: str) -> MemberRecord:
        detail = {"env_steps": float(self._counters.value("env_steps_sampled"))}
        operators = self._work.operators() if self._work is not None else {}
        return member_record(self._life, role="actor", url=url, doing=self._doing, detail=detail, operators=operators)

    def _serve(self, assignment: Assignment, watch: Watch) -> None:
        """Serve one assignment; a failing environment is made anew a few times, then the experiment is told."""
        life = self._life
        spec = self._experiments.spec(assignment.experiment)
        life.health.expect("work", within_s=WORK_WITHIN_S)
        life.log.info("serving", experiment=assignment.experiment, ordinal=assignment.ordinal)
        failures = restarts = 0
        while not life.stopping.is_set() and watch.assignment == assignment:
            work = Work(
                settings=self._settings,
                life=life,
                watch=watch,
                store=self._store,
                address=self._address,
                assignment=assignment,
                spec=spec,
                counters=self._counters,
                waits=self._waits,
            )
            self._work = work
            try:
                work.run(restart=restarts)
            except (StoreError, DeadlineExceeded):
                raise  # the cell's trouble, not the experiment's: this process starts anew
            except Exception as error:  # whatever the user's code raises: told where the user sees it
                restarts += 1
                failures = 1 if work.rollouts >= FORGIVEN_ROLLOUTS else failures + 1
                again = is_environment_fault(error) and failures <= self._settings.environment_restarts
                self._report(assignment, error, fatal=not again)
                if not again:
                    life.health.forget("work")  # it waits for a learner to end the experiment, however long there is none
                    watch.wait(other_than=assignment)
                    break
                self._counters.add("environment_restarts")
                self._experiments.add_event(
                    assignment.experiment,
                    "environment_restart",
                    f"the environment of {life.member} failed and is made anew "
                    f"(restart {failures} of {self._settings.environment_restarts} in a row)",
                )
                life.stopping.wait(self._settings.environment_backoff_s * 2 ** (failures - 1))
            finally:
                self._work = None
        life.health.forget("work")
        life.log.info("served", experiment=assignment.experiment, rollouts_of_last_try=work.rollouts)

    def _report(self, assignment: Assignment, error: Exception, *, fatal: bool) -> None:
        told = describe_error(error, where=f"actor {self._life.member!r}")
        self._life.log.error(
            "the experiment's code failed",
            experiment=assignment.experiment,
            reason=told.message,
            traceback=told.traceback,
            fatal=fatal,
        )
        fault = Fault(
            kind="environment" if is_environment_fault(error) else "flow",
            actor=self._life.member,
            where=FaultPlace(operator=told.operator, file=told.file, line=told.line),
            message=told.message,
            traceback=told.traceback,
            fatal=fatal,
        )
        self._experiments.add_fault(assignment.experiment, fault)
