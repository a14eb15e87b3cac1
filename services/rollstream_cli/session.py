"""A cell on this machine for as long as one command needs it: opened, watched, closed, whatever happens in between.

The processes are started before the client of their API is imported: they and the imports then share the time.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from rollstream.clock import Clock, Deadline
from rollstream.config import ExperimentSpec
from rollstream_cli.allowed_modules import allowed_modules
from rollstream_cli.cell.child import last_words
from rollstream_cli.cell.local_cell import LocalCell
from rollstream_cli.cell.nursery import Nursery
from rollstream_cli.cell.roles import CellPlan
from rollstream_cli.cell.state import CELL_FILE, CellState, hold_directory, write_state
from rollstream_cli.errors import CellError, Interrupted
from rollstream_cli.follow import Happening, Inbox
from rollstream_cli.interrupts import Interrupts
from rollstream_service.folders import make_writable

if TYPE_CHECKING:
    from rollstream_cli.rest import Rest
    from rollstream_cli.usage import UsageMeter

__all__ = ["CellSession", "plan_cell", "replay_shards_of"]

READY_WITHIN_S = 60.0
LOOK_EVERY_S = 0.05
GRACE_S = 20.0
IDLE_GRACE_S = 6.0
"""When no experiment is running there is nothing to save: whoever still waits for somebody waits in vain."""


def replay_shards_of(spec: ExperimentSpec) -> int:
    """How many replay shards a cell for this experiment needs: as many as its tables have, none without tables."""
    from rollstream.algorithms import needs_replay

    shards = spec.settings.get("table_shards", 1)
    return shards if needs_replay(spec.algorithm) and isinstance(shards, int) else 0


def plan_cell(
    directory: Path,
    *,
    runs_dir: Path,
    actors: int,
    replay_shards: int,
    learners: int = 1,
    host: str = "127.0.0.1",
    port: int = 0,
    environment_id: str = "",
) -> CellPlan:
    """A cell in `directory` as this process' environment asks for: embedded Redis, or the one that ROLLSTREAM_REDIS_URL names.

    Args:
        environment_id: of the one run that the cell is for, see `allowed_modules`.
    """
    environment = dict(os.environ)
    environment["ROLLSTREAM_ENVIRONMENT_MODULES"] = ",".join(allowed_modules(environment, environment_id))
    return CellPlan(
        directory=directory,
        runs_dir=runs_dir,
        server_dir=directory / "server",
        actors=actors,
        replay_shards=replay_shards,
        learners=learners,
        host=host,
        port=port,
        redis_url=environment.get("ROLLSTREAM_REDIS_URL", ""),
        operator_token=environment.get("ROLLSTREAM_OPERATOR_TOKEN") or secrets.token_urlsafe(24),
        environment=environment,
    )


class CellSession:
    """`with CellSession(...) as session:` has a cell that is ready; after the block nothing of it runs."""

    def __init__(
        self,
        plan: CellPlan,
        *,
        clock: Clock,
        interrupts: Interrupts,
        kind: str,
        experiment: str = "",
        nursery: Nursery | None = None,
        make_cell: Callable[..., LocalCell] = LocalCell,
    ) -> None:
        """
        Args:
            kind: of the cell, for `cell.json`.
            experiment: the run that the cell is for, when it is for one.
            nursery: where the first processes of the cell may wait already.
            make_cell: tests pass a cell of stand-ins.
        """
        self.plan = plan
        self.inbox = Inbox()
        self.cell = make_cell(plan, clock=clock, on_failure=self._cell_failed, on_death=self._member_died, nursery=nursery)
        self._clock = clock
        self._interrupts = interrupts
        self._kind = kind
        self._experiment = experiment
        self._failure = ""
        self.idle = True
        """No experiment is running, so the cell may stop faster; who submits one clears it."""
        self._rest: Rest | None = None
        self._meter: UsageMeter | None = None
        self._resources = ExitStack()

    @property
    def rest(self) -> Rest:
        """The cell's REST API."""
        assert self._rest is not None, "the session is open"
        return self._rest

    @property
    def meter(self) -> UsageMeter:
        """Measures the cell's processes."""
        assert self._meter is not None, "the session is open"
        return self._meter

    @property
    def failure(self) -> str:
        """Why the cell cannot work; empty while it can."""
        return self._failure

    def __enter__(self) -> CellSession:
        remedy = "choose another with --runs-dir or --dir"
        make_writable(self.plan.runs_dir, what="the folder of runs", remedy=remedy)
        make_writable(self.plan.directory, what="the folder of the cell", remedy=remedy)
        with ExitStack() as resources:
            resources.enter_context(hold_directory(self.plan.directory))
            resources.callback(self._close)
            self.cell.start()
            from rollstream_cli.rest import Rest
            from rollstream_cli.usage import UsageMeter

            self._meter = UsageMeter(self.cell.processes, clock=self._clock)
            self._rest = Rest(self.cell.url, token=self.plan.operator_token, clock=self._clock)
            resources.callback(self._rest.close)
            self._announce()
            self._interrupts.on_first = lambda: self.inbox.put(Happening(kind="interrupt", data={}))
            self._wait_until_ready(self._rest)
            if self._kind == "up":
                self.cell.never_give_up()
            self._resources = resources.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._resources.close()

    def check(self) -> None:
        """Raise when the cell cannot work any more."""
        if self._failure:
            raise CellError(self._failure)

    def _announce(self) -> None:
        state = CellState(
            pid=os.getpid(),
            url=self.cell.url,
            token=self.plan.operator_token,
            redis=self.cell.redis_text,
            kind=self._kind,
            experiment=self._experiment,
            runs_dir=str(self.plan.runs_dir.absolute()),
            started_wall_s=self._clock.wall_s(),
        )
        write_state(self.plan.directory, state)

    def _wait_until_ready(self, rest: Rest) -> None:
        deadline = Deadline(self._clock, after_s=READY_WITHIN_S)
        while not rest.ready():
            self.check()
            if self._interrupts.asked.wait(LOOK_EVERY_S):
                raise Interrupted("interrupted before the run began; nothing is left behind")
            if deadline.passed():
                log = self.plan.directory / "logs" / "control.log"
                words = last_words(log) or "it wrote nothing"
                raise CellError(f"control was not ready within {READY_WITHIN_S:.0f} s: {words}; see {log}")

    def _cell_failed(self, message: str) -> None:
        self._failure = self._failure or message
        self.inbox.put(Happening(kind="cell-failed", data={}, message=message))

    def _member_died(self, message: str) -> None:
        self.inbox.put(Happening(kind="note", data={}, message=message))

    def _close(self) -> None:
        grace_s = IDLE_GRACE_S if self.idle else GRACE_S
        self.cell.stop(grace_s=grace_s, hurry=self._interrupts.hurry, idle=self.idle)
        (self.plan.directory / CELL_FILE).unlink(missing_ok=True)
