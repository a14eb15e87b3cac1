"""Guard: a thread beside the flow that keeps the lease, hears orders, and sees faults that actors report."""

from __future__ import annotations

import contextlib
import threading
from dataclasses import dataclass
from typing import Literal

from rollstream.errors import LeaseLost, StoreError
from rollstream.store import Address, Lease, Store
from rollstream.store.changes import Changes
from rollstream.store.experiments import Experiments
from rollstream.store.faults import Fault
from rollstream_service.lifecycle import Life

__all__ = ["Guard", "Verdict"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Why the flow must end: an order to stop, a fatal fault of an actor, a lost lease, or the process being stopped."""

    kind: Literal["stop", "fault", "lost", "leave"]
    reason: str
    detail: str = ""


class Guard:
    """Watches one experiment for the learner that runs it.

    Args:
        stop: set when the flow must end; `verdict` then says why.
    """

    def __init__(
        self, address: Address, *, life: Life, experiment: str, lease: Lease, lease_ttl_s: float, stop: threading.Event
    ) -> None:
        self._store = Store(address, clock=life.clock, deadline_s=lease_ttl_s, name=f"{life.member}-guard")
        self._experiments = Experiments(self._store)
        self._changes = Changes(self._store)
        self._life = life
        self._experiment = experiment
        self._lease = lease
        self._every_s = lease_ttl_s / 3
        self._stop = stop
        self._done = threading.Event()
        self._resumed = threading.Event()
        self._resumed.set()
        self._last_fault = "0"
        self.verdict: Verdict | None = None
        self.checkpoints_ordered = self._experiments.status(experiment).checkpoints_ordered
        self._thread = threading.Thread(target=self._run, name="guard", daemon=True)

    def start(self) -> None:
        """Look once, then watch. A fault that was told before counts: an actor may fail before a learner is there."""
        self._look()
        self._thread.start()

    def stop(self) -> None:
        """Join the thread."""
        self._done.set()
        self._thread.join(timeout=10 * self._every_s)
        self._store.close()

    @property
    def paused(self) -> bool:
        return not self._resumed.is_set()

    def wait_while_paused(self, *, timeout_s: float) -> bool:
        """Block while the order is to pause, `timeout_s` at most; True when it is to run."""
        return self._resumed.wait(timeout_s)

    def _run(self) -> None:
        last = "0"
        while not self._done.is_set() and self.verdict is None:
            try:
                self._lease.renew()
                self._look()
                last = self._changes.wait(last, timeout_s=min(1.0, self._every_s))
            except LeaseLost as error:
                self._conclude(Verdict(kind="lost", reason=str(error)))
            except StoreError as error:
                self._life.log.warning("cannot watch the experiment", reason=str(error))
                self._done.wait(0.2)
        while not self._done.wait(self._every_s):  # the flow is ending: keep the lease until it has
            try:
                self._lease.renew()
            except StoreError as error:
                self._life.log.warning("cannot renew the lease", reason=str(error))

    def _look(self) -> None:
        if self._life.stopping.is_set():
            self._conclude(Verdict(kind="leave", reason="the learner is told to stop"))
            return
        wanted = self._experiments.wanted(self._experiment)
        if wanted == "stop":
            self._conclude(Verdict(kind="stop", reason="stopped by order"))
        elif wanted == "pause":
            self._resumed.clear()
        else:
            self._resumed.set()
        self.checkpoints_ordered = self._experiments.status(self._experiment).checkpoints_ordered
        for entry_id, fault in self._experiments.faults(self._experiment, after=self._last_fault):
            self._last_fault = entry_id
            if fault.fatal:
                verdict = _fatal(fault)
                self._conclude(verdict)
                self._tell(verdict)
                return

    def _tell(self, verdict: Verdict) -> None:
        """The experiment has failed, which nobody need learn only when its flow has ended; the learner says it again then."""
        with contextlib.suppress(StoreError):
            self._experiments.set_phase(
                self._experiment, "failed", reason=verdict.reason, detail=verdict.detail, lease=self._lease
            )

    def _conclude(self, verdict: Verdict) -> None:
        if self.verdict is None:
            self.verdict = verdict
        self._resumed.set()
        self._stop.set()


def _fatal(fault: Fault) -> Verdict:
    return Verdict(kind="fault", reason=fault.message, detail=fault.traceback)
