"""`rollstream bench train`: how fast a run is once it runs steadily, how soon it begins, and what it costs.

    start ─▶ first update ─▶ warm-up ─▶ window ─▶ stop
      └── start_to_first_update_s ──┘     └── rates, cores, memory

Rates come from the learner's own counters and clock at the two ends of the window, so neither the way over HTTP nor the time of
this process counts.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rollstream.clock import Clock, Deadline
from rollstream.config import FINAL_PHASES, ExperimentSpec
from rollstream_cli.cell.roles import CellPlan
from rollstream_cli.errors import CellError, ExperimentFailed, Interrupted
from rollstream_cli.failure import failure_message
from rollstream_cli.follow import Follower
from rollstream_cli.interrupts import Interrupts
from rollstream_cli.process_start import process_start_wall_s
from rollstream_cli.run_directory import new_run_id
from rollstream_cli.session import CellSession
from rollstream_cli.summary import cores_between
from rollstream_cli.usage import UsageSample

__all__ = ["TrainingBench", "rates_between"]

FIRST_UPDATE_WITHIN_S = 120.0
LOOK_EVERY_S = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingBench:
    """One measurement."""

    plan: CellPlan
    spec: ExperimentSpec
    warm_up_s: float
    window_s: float
    clock: Clock
    say: Callable[[str], None]

    def run(self, interrupts: Interrupts) -> dict[str, Any]:
        """Measure; the cell is gone afterwards."""
        with CellSession(self.plan, clock=self.clock, interrupts=interrupts, kind="bench") as session:
            watch = _Watch(session, self.spec, interrupts=interrupts, clock=self.clock)
            began = watch.wait_for_first_update()
            self.say(f"first update after {began:.2f} s; warming up for {self.warm_up_s:.0f} s")
            watch.go_on(self.warm_up_s)
            self.say(f"measuring for {self.window_s:.0f} s")
            first, before = session.meter.sample(), watch.newest
            reports = watch.go_on(self.window_s)
            last, after = session.meter.sample(), watch.newest
            watch.stop()
        return {
            "algorithm": self.spec.algorithm,
            "environment": self.spec.environment.id,
            "actors": self.spec.actors,
            "envs_per_actor": self.spec.envs_per_actor,
            **rates_between(before, after),
            "lag": _mean([report.get("lag") for report in reports]),
            "mean_return": after.get("mean_return"),
            "start_to_first_update_s": round(began, 2),
            **_cost(first, last),
            "release": after.get("release", ""),
        }


class _Watch:
    """Follows the reports of the measured run."""

    def __init__(self, session: CellSession, spec: ExperimentSpec, *, interrupts: Interrupts, clock: Clock) -> None:
        self.newest: Mapping[str, Any] = {}
        self._session = session
        self._interrupts = interrupts
        self._clock = clock
        self._after = "0"
        self._first_update_wall_s: float | None = None
        view = session.rest.post("/v1/experiments", spec.model_dump(mode="json"), id=new_run_id(spec.name))
        self._experiment = str(view["id"])
        self._follower = Follower(session.rest, self._experiment, inbox=session.inbox)
        self._follower.start()

    def stop(self) -> None:
        """Read no events any more."""
        self._follower.stop()

    def wait_for_first_update(self) -> float:
        """Seconds from the start of this process to the first update of the learner."""
        deadline = Deadline(self._clock, after_s=FIRST_UPDATE_WITHIN_S)
        began_wall_s = process_start_wall_s()
        while not deadline.passed():
            self._look()
            if self.newest.get("updates"):
                return (self._first_update_wall_s or self._clock.wall_s()) - began_wall_s
        raise CellError(f"{self._experiment} made no update within {FIRST_UPDATE_WITHIN_S:.0f} s")

    def go_on(self, duration_s: float) -> list[Mapping[str, Any]]:
        """Wait; the reports that came meanwhile."""
        deadline = Deadline(self._clock, after_s=duration_s)
        reports: list[Mapping[str, Any]] = []
        while not deadline.passed():
            reports += self._look()
        return reports

    def _look(self) -> list[Mapping[str, Any]]:
        if self._interrupts.asked.wait(LOOK_EVERY_S):
            raise Interrupted("interrupted; nothing was measured")
        self._session.check()
        while (happening := self._session.inbox.next(timeout_s=0.0)) is not None:
            if happening.kind == "event" and happening.data.get("kind") == "first_update":
                self._first_update_wall_s = float(happening.data["wall_s"])
        listed = self._session.rest.get(f"/v1/experiments/{self._experiment}/reports", after=self._after)
        self._after = str(listed["next_after"])
        reports: list[Mapping[str, Any]] = [entry["data"] for entry in listed["reports"]]
        if reports:
            self.newest = reports[-1]
        else:
            self._refuse_an_end()
        return reports

    def _refuse_an_end(self) -> None:
        view = self._session.rest.get(f"/v1/experiments/{self._experiment}")
        if view["phase"] in FINAL_PHASES:
            message = failure_message(
                self._experiment,
                reason=str(view["reason"]) or f"it ended as {view['phase']} before it was measured",
                detail=str(view["detail"]),
            )
            raise ExperimentFailed(message)


def rates_between(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, float]:
    """Rates over the window between two reports."""
    window_s = float(after.get("wall_s", 0.0)) - float(before.get("wall_s", 0.0))
    if window_s <= 0.0:
        raise CellError("the window holds no two reports of the learner; measure longer with --seconds")

    def rate(name: str) -> float:
        return round((float(after.get(name) or 0) - float(before.get(name) or 0)) / window_s, 1)

    return {
        "window_s": round(window_s, 2),
        "env_steps_per_s": rate("env_steps"),
        "env_steps_trained_per_s": rate("env_steps_trained"),
        "updates_per_s": rate("updates"),
    }


def _cost(first: UsageSample, last: UsageSample) -> dict[str, Any]:
    return {
        "cores_used": round(cores_between(first, last), 2),
        "cores_available": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "rss_total_mb": round(last.total_mb, 1),
        "rss_mb": {member: round(mb, 1) for member, mb in sorted(last.rss_mb.items())},
    }


def _mean(values: list[Any]) -> float | None:
    numbers = [float(value) for value in values if isinstance(value, (int, float))]
    return round(sum(numbers) / len(numbers), 3) if numbers else None
