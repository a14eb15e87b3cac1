"""A child process that is kept alive; stand-ins are real processes."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Empty, Queue

import pytest

from rollstream.clock import SystemClock
from rollstream_cli.cell.child import Child, ChildSpec, last_words

MakeChild = Callable[..., Child]


@pytest.fixture
def complaints() -> Queue[str]:
    return Queue()


@pytest.fixture
def make_child(tmp_path: Path, complaints: Queue[str]) -> Iterator[MakeChild]:
    made: list[Child] = []

    def make(code: str, **options: int | None) -> Child:
        spec = ChildSpec(
            member="actor-0",
            role="actor",
            command=(sys.executable, "-S", "-c", code),
            environment={"OUT": str(tmp_path / "out"), "PATH": os.environ["PATH"]},
            log=tmp_path / "actor-0.log",
        )
        child = Child(spec, clock=SystemClock(), on_hopeless=complaints.put, **options)  # type: ignore[arg-type]
        made.append(child)
        child.start()
        return child

    yield make
    for child in made:
        child.ask_to_stop()
        child.end(remaining_s=lambda: 0.0)


def until(condition: Callable[[], object], *, timeout_s: float = 20.0) -> None:
    pause = threading.Event()
    for _ in range(int(timeout_s / 0.02)):
        if condition():
            return
        pause.wait(0.02)
    raise AssertionError("the condition did not become true in time")


def test_a_killed_process_is_started_again(make_child: MakeChild) -> None:
    child = make_child("import time; time.sleep(60)")
    until(lambda: child.pid)
    first = child.pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    until(lambda: child.pid not in (None, first))
    assert child.restarts == 1


def test_a_process_that_was_asked_to_stop_is_not_started_again(make_child: MakeChild) -> None:
    child = make_child("import time; time.sleep(60)")
    until(lambda: child.pid)
    child.ask_to_stop()
    assert child.end(remaining_s=lambda: 10.0)
    assert child.ended
    assert child.restarts == 0


def test_a_process_that_ignores_sigterm_is_killed(make_child: MakeChild, tmp_path: Path) -> None:
    code = "import os, signal, time; signal.signal(15, signal.SIG_IGN); open(os.environ['OUT'], 'w').close(); time.sleep(60)"
    child = make_child(code)
    until((tmp_path / "out").exists)
    child.ask_to_stop()
    assert not child.end(remaining_s=lambda: 0.0)
    assert child.ended


def test_a_wish_to_hurry_ends_the_grace_period(make_child: MakeChild, tmp_path: Path) -> None:
    code = "import os, signal, time; signal.signal(15, signal.SIG_IGN); open(os.environ['OUT'], 'w').close(); time.sleep(60)"
    child = make_child(code)
    until((tmp_path / "out").exists)
    child.ask_to_stop()
    hurry = threading.Event()
    hurry.set()
    assert not child.end(remaining_s=lambda: 1_000.0, hurry=hurry)


@pytest.mark.parametrize("code", [2, 4])
def test_exit_codes_that_mean_never_are_reported_with_the_last_line(
    make_child: MakeChild, complaints: Queue[str], code: int
) -> None:
    child = make_child(f"print('first'); print('ROLLSTREAM_PORT: must be a number'); raise SystemExit({code})")
    message = complaints.get(timeout=20)
    assert f"actor-0 cannot work (exit code {code}): ROLLSTREAM_PORT: must be a number" in message
    until(lambda: child.ended)
    assert child.restarts == 0


def test_a_process_that_never_starts_well_is_given_up(make_child: MakeChild, complaints: Queue[str]) -> None:
    make_child("raise RuntimeError('no torch here')", deaths_allowed=2)
    message = complaints.get(timeout=20)
    assert "actor-0 ended 2 times in a row, now with exit code 1; its last line is 'RuntimeError: no torch here'" in message


def test_a_process_that_crashes_in_native_code_again_and_again_is_given_up(make_child: MakeChild, complaints: Queue[str]) -> None:
    make_child("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", deaths_allowed=2)
    assert "ended 2 times in a row, now with signal SIGSEGV; it wrote nothing" in complaints.get(timeout=20)


def test_after_a_good_start_a_process_is_never_given_up(make_child: MakeChild, complaints: Queue[str]) -> None:
    child = make_child("import time; time.sleep(0.2); raise SystemExit(1)", deaths_allowed=2)
    child.never_give_up()
    until(lambda: child.restarts >= 3)
    with pytest.raises(Empty):
        complaints.get_nowait()


def test_a_command_that_does_not_exist_is_reported(tmp_path: Path, complaints: Queue[str]) -> None:
    spec = ChildSpec(member="actor-0", role="actor", command=(str(tmp_path / "nothing"),), environment={}, log=tmp_path / "log")
    child = Child(spec, clock=SystemClock(), on_hopeless=complaints.put)
    child.start()
    assert "actor-0 cannot be started" in complaints.get(timeout=20)
    assert child.end(remaining_s=lambda: 5.0)


def test_what_a_dead_process_left_behind_is_killed(make_child: MakeChild, tmp_path: Path) -> None:
    inner = "import time; time.sleep(60)"
    code = (
        "import os, subprocess, sys, time\n"
        f"p = subprocess.Popen([sys.executable, '-S', '-c', {inner!r}])\n"
        "open(os.environ['OUT'], 'w').write(str(p.pid)); time.sleep(60)"
    )
    child = make_child(code)
    until(lambda: (tmp_path / "out").exists() and (tmp_path / "out").read_text())
    orphan = int((tmp_path / "out").read_text())
    child.ask_to_stop()
    child.end(remaining_s=lambda: 10.0)
    until(lambda: not runs(orphan))


def runs(pid: int) -> bool:
    """Runs, and is not merely waiting to be collected."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_last_words_are_the_reason_of_a_json_line(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text('{"event": "cannot start", "reason": "Redis refused"}\n\n')
    assert last_words(log) == "Redis refused"


def test_last_words_of_plain_text_are_its_last_line(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("Traceback\nValueError: x\n")
    assert last_words(log) == "ValueError: x"
    assert last_words(log, start=log.stat().st_size) == ""
    assert last_words(tmp_path / "none") == ""
