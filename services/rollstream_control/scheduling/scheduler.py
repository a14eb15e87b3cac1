"""The thread that gives actors to experiments.

    rs:changes ──wakes──▶ who is live? who wants actors? ──plan──▶ rs:assignments ──▶ actors
        └──▶ on_change: event streams look again

Without a change it looks once a second whether somebody has gone: records expire silently.

Only one control at a time does this, under a lease; the others wait for it to fall free. A plan is a pure function of what
stands in Redis, so a control that takes over goes on where the other was, and two that overlap for a moment agree.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from rollstream.algorithms import takes_actors
from rollstream.config import ExperimentSpec, Phase
from rollstream.errors import ConfigError, LeaseLost, StoreError
from rollstream.store import (
    Address,
    Assignment,
    Assignments,
    Changes,
    Experiments,
    Lease,
    MemberRecord,
    Members,
    ServerInfo,
    Store,
    keys,
)
from rollstream_control.scheduling.plan import Demand, Seat, plan
from rollstream_service.lifecycle import Life

__all__ = ["Scheduler", "demands", "phase_without_learner"]

WAIT_S = 1.0
"""Longest sleep: how late a member that died without a word is noticed after its record has expired."""
FULL_LOOK_EVERY_S = 10.0
"""Experiments are read again this often even when nothing changed, should a wake-up ever be lost."""
LEASE_S = 5.0
"""How long nobody schedules after a control was killed."""
ASK_SERVER_EVERY_S = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenExperiment:
    """What planning needs to know of an experiment that has not ended."""

    id: str
    spec: ExperimentSpec
    phase: Phase
    wanted: Literal["run", "pause", "stop"]


def demands(experiments: Sequence[OpenExperiment], *, idle_learners: int, learners: int) -> list[Demand]:
    """Who wants actors: what a learner has claimed, and what the next idle learner will claim.

    A queued experiment that no learner can take would let actors work for nobody. Without any learner (it is still starting, most
    likely) the first in the queue gets its actors already, so that they are ready when it comes.
    """
    claimed = [entry for entry in experiments if entry.phase != "queued" and entry.wanted != "pause"]
    queued = [entry for entry in experiments if entry.phase == "queued" and entry.wanted == "run"]
    ahead = max(idle_learners, 0 if claimed or learners else 1)
    return [
        Demand(
            experiment=entry.id,
            weight=entry.spec.weight,
            actors=entry.spec.actors if takes_actors(entry.spec.algorithm) else 0,
        )
        for entry in claimed + queued[:ahead]
    ]


def phase_without_learner(entry: OpenExperiment, *, idle_learners: int) -> Literal["queued", "paused", "stopped"] | None:
    """The phase that an experiment gets when no learner has it; None: the one that it is in, or a learner will say.

    An idle learner still ends an experiment that ran, with a checkpoint and a summary; it takes none that is to be paused.
    """
    if entry.wanted == "stop" and (entry.phase == "queued" or idle_learners == 0):
        return "stopped"
    if entry.wanted == "pause" and entry.phase != "paused":
        return "paused"
    if entry.wanted == "run" and entry.phase == "paused":
        return "queued"
    return None


class OnLook(Protocol):
    """Gets what the scheduler sees: live members, and the phase of each experiment that has not ended."""

    def __call__(self, members: Sequence[MemberRecord], *, phases: Sequence[str]) -> None: ...


class Scheduler:
    """See the module. `turn` is one look at the cell; `start` runs turns in a thread until `life.stopping`.

    Args:
        on_change: called from the thread after each wake-up and once at the end; must return at once.
        on_look: called from the thread after each look; must return at once.
    """

    def __init__(
        self,
        address: Address,
        *,
        life: Life,
        on_change: Callable[[], None] = lambda: None,
        on_look: OnLook = lambda members, phases: None,
    ) -> None:
        self._store = Store(address, clock=life.clock, deadline_s=LEASE_S, name=f"{life.member}-scheduler")
        self._members = Members(self._store)
        self._experiments = Experiments(self._store)
        self._assignments = Assignments(self._store)
        self._changes = Changes(self._store)
        self._life = life
        self._on_change = on_change
        self._on_look = on_look
        self._thread = threading.Thread(target=self._run, name="scheduler", daemon=True)
        self._lease: Lease | None = None
        self._specs: dict[str, ExperimentSpec] = {}
        self._seen_members: list[tuple[str, str]] = []
        self._looked_s = float("-inf")
        self._asked_s = float("-inf")
        self._look_again = False
        self._generation = 0
        self.server: ServerInfo | None = None
        """What the server said last; None before it was asked."""

    @property
    def scheduling(self) -> bool:
        """Whether this control is the one that assigns actors."""
        return self._lease is not None

    def start(self) -> None:
        self._life.health.condition("scheduler", ok=False, why="has not looked at the cell yet")
        self._life.health.expect("scheduler", within_s=60.0)
        self._thread.start()

    def stop(self) -> None:
        """Join the thread, give the lease back. Call it after `life.stopping` is set."""
        try:
            self._changes.announce("cell", "stopping")  # wakes the thread
        except StoreError as error:
            self._life.log.warning("Redis is away; the scheduler ends by its own deadline", reason=str(error))
        self._thread.join(timeout=4 * LEASE_S)
        if self._lease is not None:
            try:
                self._lease.release()
            except StoreError as error:
                self._life.log.warning("could not give the scheduler's lease back; it runs out by itself", reason=str(error))
            self._lease = None
        self._store.close()

    def _run(self) -> None:
        last, changed = "0-0", True
        while not self._life.stopping.is_set():
            self._life.health.beat("scheduler")
            try:
                if last == "0-0":
                    last = self._changes.latest()
                self._ask_server()
                self.turn(changed=changed)
                self._life.health.condition("scheduler", ok=True)
                now = self._changes.wait(last, timeout_s=WAIT_S)
            except StoreError as error:
                self._life.health.condition("scheduler", ok=False, why=str(error))
                self._life.stopping.wait(WAIT_S / 2)
                changed = True
                continue
            changed = now != last
            last = now
            if changed:
                self._on_change()
        self._on_change()

    def turn(self, *, changed: bool = True) -> None:
        """Hold the lease, look, plan, assign. Without a change, only look whether a member has gone."""
        if not self._hold_lease():
            return
        members = self._members.list()
        seen = [(member.id, member.doing if member.role == "learner" else "") for member in members]
        due = self._look_again or self._life.clock.monotonic_s() - self._looked_s >= FULL_LOOK_EVERY_S
        if not changed and not due and seen == self._seen_members:
            return
        self._seen_members = seen
        self._looked_s = self._life.clock.monotonic_s()
        learners = [member for member in members if member.role == "learner"]
        idle = sum(not learner.doing for learner in learners)
        experiments = self._settle_orphans(self._open(), idle_learners=idle)
        self._on_look(members, phases=[entry.phase for entry in experiments])
        current = self._assignments.all()
        planned = plan(
            actors=[member.id for member in members if member.role == "actor"],
            demands=demands(experiments, idle_learners=idle, learners=len(learners)),
            current={actor: Seat(experiment=entry.experiment, ordinal=entry.ordinal) for actor, entry in current.items()},
        )
        self._carry_out(planned, current)

    def _hold_lease(self) -> bool:
        if self._lease is not None:
            try:
                self._lease.renew()
                return True
            except LeaseLost:
                self._lease = None
                self._life.log.warning("another control assigns actors now")
        self._lease = Lease.acquire(
            self._store,
            key=keys.control_lease(),
            token_key=keys.control_token(),
            owner=self._life.member,
            ttl_s=LEASE_S,
        )
        if self._lease is not None:
            self._looked_s = float("-inf")
            self._life.log.info("assigning actors from now on", token=self._lease.token)
        return self._lease is not None

    def _open(self) -> list[OpenExperiment]:
        ids = self._experiments.open_ids()
        self._specs = {experiment: spec for experiment, spec in self._specs.items() if experiment in ids}
        found = []
        for experiment in ids:
            try:
                if experiment not in self._specs:
                    self._specs[experiment] = self._experiments.spec(experiment)
                status = self._experiments.status(experiment)
                wanted = self._experiments.wanted(experiment)
            except ConfigError as error:  # deleted meanwhile, or written by a release that we do not understand
                self._life.log.warning("cannot schedule an experiment", experiment=experiment, reason=str(error))
                continue
            if not status.ended:
                entry = OpenExperiment(id=experiment, spec=self._specs[experiment], phase=status.phase, wanted=wanted)
                found.append(entry)
        return found

    def _settle_orphans(self, experiments: Sequence[OpenExperiment], *, idle_learners: int) -> list[OpenExperiment]:
        """Experiments that are left after those without a learner got the phase that was ordered."""
        left = []
        self._look_again = False
        for entry in experiments:
            phase = phase_without_learner(entry, idle_learners=idle_learners)
            if phase is None:
                left.append(entry)
            elif not self._settle(entry, phase):
                self._look_again = True  # when its learner is dead, nothing but the lease tells, which runs out silently
                left.append(entry)
            elif phase != "stopped":
                left.append(replace(entry, phase=phase))
        return left

    def _settle(self, entry: OpenExperiment, phase: Literal["queued", "paused", "stopped"]) -> bool:
        lease = Lease.acquire(
            self._store,
            key=keys.experiment_lease(entry.id),
            token_key=keys.experiment_token(entry.id),
            owner=self._life.member,
            ttl_s=LEASE_S,
        )
        if lease is None:  # a learner has it, and will obey
            return False
        if phase == "queued":
            reason = "resumed by order; a learner goes on from its checkpoint"
        else:
            when = "before a learner began" if entry.phase == "queued" else "after its learner had gone"
            reason = f"{phase} by order {when}"
        try:
            return self._experiments.set_phase(entry.id, phase, reason=reason, lease=lease)
        except LeaseLost:
            return False
        finally:
            lease.release()

    def _carry_out(self, planned: Mapping[str, Seat], current: Mapping[str, Assignment]) -> None:
        self._generation = max([self._generation, *(entry.generation for entry in current.values())])
        for actor, entry in current.items():
            if actor not in planned:
                self._assignments.assign(actor, None)
                self._life.log.info("actor released", actor=actor, experiment=entry.experiment)
        for actor, seat in planned.items():
            now = current.get(actor)
            if now is not None and (now.experiment, now.ordinal) == (seat.experiment, seat.ordinal):
                continue
            self._generation += 1
            assignment = Assignment(experiment=seat.experiment, ordinal=seat.ordinal, generation=self._generation)
            self._assignments.assign(actor, assignment)
            self._life.log.info("actor assigned", actor=actor, experiment=seat.experiment, ordinal=seat.ordinal)

    def _ask_server(self) -> None:
        if self._life.clock.monotonic_s() - self._asked_s >= ASK_SERVER_EVERY_S:
            self.server = self._store.check()
            self._asked_s = self._life.clock.monotonic_s()
