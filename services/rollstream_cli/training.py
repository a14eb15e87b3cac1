"""`rollstream train`: one run in a cell of its own, from the spec to the summary.

start cell ─▶ submit ─▶ follow ─▶ ended ──────────────▶ summary ─▶ stop cell
                           │                              ▲
                           └─ Ctrl-C: order `stop`, wait ─┘  (a second one stops the cell at once)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rollstream.clock import Clock, Deadline
from rollstream.config import FINAL_PHASES, ExperimentSpec
from rollstream.errors import ConfigError
from rollstream_cli.cell.roles import CellPlan
from rollstream_cli.errors import CellError, ExperimentFailed, RestError
from rollstream_cli.failure import failure_message
from rollstream_cli.follow import Follower, Happening
from rollstream_cli.interrupts import Interrupts, catch_interrupts
from rollstream_cli.process_start import process_start_wall_s
from rollstream_cli.run_directory import new_run_id, removed_if_it_never_began, write_run, write_summary
from rollstream_cli.session import CellSession
from rollstream_cli.summary import with_usage

if TYPE_CHECKING:
    from rich.console import Console

    from rollstream_cli.cell.nursery import Nursery
    from rollstream_cli.progress import Progress
    from rollstream_cli.rest import Rest
    from rollstream_cli.usage import UsageSample

__all__ = ["RunOutcome", "Training", "experiment_path"]

LOOK_EVERY_S = 1.0
"""How often reports are fetched and processes are measured: as often as a learner reports."""
DOUBT_EVERY_S = 5.0
"""How often the phase is asked for, in case the event that told its end was lost with a killed Redis."""
STOP_WITHIN_S = 60.0
"""How long a run that was told to stop gets for its last checkpoint; Ctrl-C again is there for who does not want to wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcome:
    """How a run ended."""

    experiment: str
    directory: Path
    phase: str
    summary: dict[str, Any]
    interrupted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What the processes had used when the run began, and when it had ended."""

    first: UsageSample
    last: UsageSample


def experiment_path(experiment: str, rest: str = "") -> str:
    """Path of an experiment in the REST API."""
    return f"/v1/experiments/{experiment}{rest}"


class Training:
    """One run, followed by the main thread."""

    def __init__(
        self,
        plan: CellPlan,
        *,
        spec: ExperimentSpec,
        run_id: str,
        resumed: bool,
        nursery: Nursery,
        console: Callable[[], Console],
        clock: Clock,
    ) -> None:
        """
        Args:
            run_id: wanted id of the experiment.
            resumed: continue `run_id` when it is still open in the cell's data; otherwise submit `spec` under a new id.
            nursery: where the first processes of the cell may wait already.
            console: where progress is shown; made when it is needed, which is after the processes have been started.
        """
        self._plan = plan
        self._spec = spec
        self._run_id = run_id
        self._resumed = resumed
        self._nursery = nursery
        self._console = console
        self._clock = clock
        self._began_wall_s = 0.0
        self._first_update_wall_s: float | None = None
        self._last_report = "0"

    def run(self) -> RunOutcome:
        """Run to the end.

        Raises:
            ConfigError: the cell refused the spec. StoreError: Redis is not there, or refuses. In both cases nothing is left.
            CellError: a process cannot work.
            ExperimentFailed: the run failed; the message says where.
            Interrupted: stopped by a signal before the run began.
        """
        with removed_if_it_never_began(self._plan.directory), catch_interrupts() as interrupts:
            return self._in_cell(interrupts)

    def _in_cell(self, interrupts: Interrupts) -> RunOutcome:
        session = CellSession(
            self._plan,
            clock=self._clock,
            interrupts=interrupts,
            kind="train",
            experiment=self._run_id,
            nursery=self._nursery,
        )
        with ExitStack() as resources:
            resources.enter_context(session)
            from rollstream_cli.progress import make_progress

            self._began_wall_s = process_start_wall_s()
            progress = make_progress(self._console(), clock=self._clock)
            resources.callback(progress.close)
            first = session.meter.sample()
            experiment = self._submit(session.rest)
            session.idle = False
            directory = self._plan.runs_dir / experiment
            self._note(directory, experiment, phase="running")
            progress.say(f"{experiment}  {session.cell.url}  logs in {self._plan.directory / 'logs'}")
            follower = Follower(session.rest, experiment, inbox=session.inbox)
            follower.start()
            try:
                view = self._follow(session, experiment, progress, interrupts)
            finally:
                follower.stop()
            session.idle = view["phase"] in FINAL_PHASES
            last = session.meter.sample()
            if session.idle:
                session.cell.begin_to_stop()  # which takes them as long as what is still to do here
            usage = Usage(first=first, last=last)
            outcome = self._finish(session, view, directory, usage=usage, interrupted=interrupts.asked.is_set())
        follower.join(timeout_s=2.0)
        if outcome.phase == "failed":
            reason, detail = str(view.get("reason", "")), str(view.get("detail", ""))
            raise ExperimentFailed(failure_message(experiment, reason=reason, detail=detail))
        return outcome

    def _submit(self, rest: Rest) -> str:
        """Continue the run when the cell knows it and it is open; submit it otherwise. Returns the id of the experiment."""
        if self._resumed:
            try:
                view = rest.get(experiment_path(self._run_id))
            except RestError as error:
                if error.status != 404:  # the cell's data are gone: the checkpoint still is there
                    raise
            else:
                if view["phase"] not in FINAL_PHASES:
                    rest.post(experiment_path(self._run_id, "/resume"))
                    return self._run_id
        spec = self._spec.model_dump(mode="json")
        wanted = new_run_id(self._spec.name) if self._resumed else self._run_id
        view = rest.post("/v1/experiments", spec, id=wanted)
        return str(view["id"])

    def _note(self, directory: Path, experiment: str, *, phase: str) -> None:
        spec = self._spec.model_dump(mode="json")
        write_run(directory, experiment=experiment, spec=spec, phase=phase, cell_dir=self._plan.directory)

    def _follow(self, session: CellSession, experiment: str, progress: Progress, interrupts: Interrupts) -> Mapping[str, Any]:
        """Show what happens until the run has ended; returns the last view of it."""
        look = Deadline(self._clock, after_s=LOOK_EVERY_S)
        doubt = Deadline(self._clock, after_s=DOUBT_EVERY_S)
        stop_within: Deadline | None = None
        while True:
            happening = session.inbox.next(timeout_s=look.remaining_s())
            ended = happening is not None and self._handle(happening, progress)
            if interrupts.asked.is_set() and stop_within is None:
                progress.say("stopping: the learner writes its last checkpoint (Ctrl-C again to stop at once)")
                self._order_stop(session.rest, experiment, progress)
                stop_within = Deadline(self._clock, after_s=STOP_WITHIN_S)
            if ended or look.passed():
                look = Deadline(self._clock, after_s=LOOK_EVERY_S)
                session.meter.sample()
                self._show_reports(session.rest, experiment, progress)
            if ended or doubt.passed():
                doubt = Deadline(self._clock, after_s=DOUBT_EVERY_S)
                view = self._view(session.rest, experiment)
                if view is not None and view["phase"] in FINAL_PHASES:
                    return view
            if interrupts.hurry.is_set() or (stop_within is not None and stop_within.passed()):
                return self._view(session.rest, experiment) or {"phase": "running"}

    def _handle(self, happening: Happening, progress: Progress) -> bool:
        """Show one happening; True when the run has ended."""
        data = happening.data
        if happening.kind == "cell-failed":
            raise CellError(happening.message)
        if happening.kind == "follow-failed":
            raise RestError(happening.message)
        if happening.kind == "note":
            progress.say(happening.message)
        if (
            happening.kind == "event" and float(data.get("wall_s", 0.0)) >= self._began_wall_s
        ):  # not of an earlier life of the run
            if data.get("kind") == "first_update":
                self._first_update_wall_s = float(data["wall_s"])
            elif data.get("message") and data.get("kind") != "order" and data.get("phase") != "failed":  # told at the end
                progress.say(str(data["message"]))
        return data.get("phase") in FINAL_PHASES

    def _show_reports(self, rest: Rest, experiment: str, progress: Progress) -> None:
        try:
            listed = rest.get(experiment_path(experiment, "/reports"), after=self._last_report)
        except RestError:  # control is being restarted: the next look shows them
            return
        self._last_report = str(listed["next_after"])
        for entry in listed["reports"]:
            if entry["data"].get("updates") and self._first_update_wall_s is None:
                self._first_update_wall_s = self._clock.wall_s()
            progress.report(entry["data"])

    def _order_stop(self, rest: Rest, experiment: str, progress: Progress) -> None:
        try:
            rest.post(experiment_path(experiment, "/stop"))
        except (RestError, ConfigError) as error:
            progress.say(f"the order to stop did not arrive: {error}")

    def _view(self, rest: Rest, experiment: str) -> dict[str, Any] | None:
        try:
            view: dict[str, Any] = rest.get(experiment_path(experiment))
        except RestError:  # control is being restarted: ask again at the next look
            return None
        return view

    def _finish(
        self, session: CellSession, view: Mapping[str, Any], directory: Path, *, usage: Usage, interrupted: bool
    ) -> RunOutcome:
        """Write down how the run ended."""
        phase = str(view["phase"])
        summary = dict(view.get("summary") or {})
        if self._first_update_wall_s is not None:
            summary["start_to_first_update_s"] = round(self._first_update_wall_s - self._began_wall_s, 2)
        summary = with_usage(summary, meter=session.meter, first=usage.first, last=usage.last)
        summary |= {"experiment": directory.name, "phase": phase, "restarts": session.cell.restarts()}
        summary["summary_file"] = str((directory / "summary.json").absolute())
        self._note(directory, directory.name, phase=phase)
        write_summary(directory, summary)
        return RunOutcome(experiment=directory.name, directory=directory, phase=phase, summary=summary, interrupted=interrupted)
