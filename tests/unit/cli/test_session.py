"""A cell for as long as a command needs it; stand-ins are real processes, the server is real."""

from __future__ import annotations

import functools
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from rollstream.clock import SystemClock
from rollstream.config import ExperimentSpec
from rollstream_cli.cell.local_cell import LocalCell
from rollstream_cli.cell.roles import CellPlan, Role
from rollstream_cli.cell.state import is_running, read_state
from rollstream_cli.errors import CellError, Interrupted
from rollstream_cli.interrupts import Interrupts
from rollstream_cli.leash import leashed
from rollstream_cli.session import CellSession, plan_cell, replay_shards_of

READY = """
import http.server, os
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header('Content-Length', '0')
        self.end_headers()
    def log_message(self, *_): pass
http.server.HTTPServer(('127.0.0.1', int(os.environ['ROLLSTREAM_PORT'])), Handler).serve_forever()
"""
WAITING = "import threading; threading.Event().wait(60)"
DYING = "print('no disk'); raise SystemExit(2)"


def session_in(
    directory: Path, *, control: str = READY, learner: str = WAITING, interrupts: Interrupts | None = None
) -> CellSession:
    def command(role: Role) -> tuple[str, ...]:
        code = {"control": control, "learner": learner}.get(role, WAITING)
        return (*leashed(), sys.executable, "-S", "-c", code)

    plan = CellPlan(
        directory=directory,
        runs_dir=directory,
        server_dir=directory / "server",
        actors=1,
        replay_shards=0,
        operator_token="a-token-for-tests",
        environment={"PATH": os.environ["PATH"]},
    )
    return CellSession(
        plan,
        clock=SystemClock(),
        interrupts=interrupts or Interrupts(),
        kind="train",
        experiment="ppo-1",
        make_cell=functools.partial(LocalCell, command=command),
    )


def test_a_cell_is_ready_inside_and_gone_after_the_block(tmp_path: Path) -> None:
    with session_in(tmp_path) as session:
        assert session.rest.ready()
        assert is_running(tmp_path)
        state = read_state(tmp_path)
        assert (state.kind, state.experiment, state.token, state.pid) == ("train", "ppo-1", "a-token-for-tests", os.getpid())
        assert state.url == session.cell.url
        assert "learner-0" in session.meter.sample().rss_mb
    assert session.cell.processes() == {}
    assert not is_running(tmp_path)
    assert not (tmp_path / "cell.json").exists()


def test_a_process_that_cannot_work_ends_the_start(tmp_path: Path) -> None:
    session = session_in(tmp_path, control=WAITING, learner=DYING)
    with pytest.raises(CellError, match=r"learner-0 cannot work \(exit code 2\): no disk"), session:
        raise AssertionError("the block must not run")
    assert session.cell.processes() == {}


def test_a_process_that_cannot_work_any_more_is_told(tmp_path: Path) -> None:
    later = "import os, threading\nwhile not os.path.exists('end'): threading.Event().wait(0.02)\n"
    with session_in(tmp_path, learner=f"import os; os.chdir({str(tmp_path)!r})\n{later}{DYING}") as session:
        (tmp_path / "end").touch()
        happening = session.inbox.next(timeout_s=20.0)
        assert happening is not None
        assert happening.kind == "cell-failed"
        with pytest.raises(CellError, match="learner-0 cannot work"):
            session.check()


def test_an_interrupt_ends_the_start_and_leaves_nothing(tmp_path: Path) -> None:
    interrupts = Interrupts()
    interrupts.note()
    session = session_in(tmp_path, control=WAITING, interrupts=interrupts)
    with pytest.raises(Interrupted, match="interrupted before the run began; nothing is left behind"), session:
        raise AssertionError("the block must not run")
    assert session.cell.processes() == {}


def test_who_names_a_callable_allows_its_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROLLSTREAM_ENVIRONMENT_MODULES", "theirs")

    def allowed(environment_id: str) -> str:
        plan = plan_cell(tmp_path, runs_dir=tmp_path, actors=1, replay_shards=0, environment_id=environment_id)
        return plan.environment["ROLLSTREAM_ENVIRONMENT_MODULES"]

    assert allowed("robots.arm:make") == "theirs,robots.arm"
    assert allowed("envpool:Pong-v5") == "theirs"
    assert allowed("CartPole-v1") == "theirs"


def test_a_cell_on_this_machine_has_a_token_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ROLLSTREAM_OPERATOR_TOKEN", raising=False)
    first, second = (plan_cell(tmp_path, runs_dir=tmp_path, actors=1, replay_shards=0).operator_token for _ in range(2))
    assert len(first) >= 32
    assert first != second
    monkeypatch.setenv("ROLLSTREAM_OPERATOR_TOKEN", "given-by-a-person")
    assert plan_cell(tmp_path, runs_dir=tmp_path, actors=1, replay_shards=0).operator_token == "given-by-a-person"


def test_a_cell_has_as_many_shards_as_the_tables_of_its_experiment() -> None:
    def shards(algorithm: str, **settings: Any) -> int:
        document = {"name": "x", "algorithm": algorithm, "environment": {"id": "CartPole-v1"}, "settings": settings}
        return replay_shards_of(ExperimentSpec.model_validate(document))

    assert (shards("ppo"), shards("dqn"), shards("dqn", table_shards=3)) == (0, 1, 3)
