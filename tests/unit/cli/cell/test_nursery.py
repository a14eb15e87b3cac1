"""Processes that are forked from a command and wait: a program of its own forks them, the service is a stand-in."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import psutil
import pytest

from rollstream_cli.cell.nursery import Nursery

SERVICE = """
import json, os, signal, sys, threading
import shared_part
told = {
    "arguments": sys.argv[1:],
    "environment": dict(os.environ),
    "files": sorted(int(name) for name in os.listdir("/proc/self/fd"))[:3],
    "input": sys.stdin.read(),
    "session": os.getsid(0) == os.getpid(),
    "signals": [signal.getsignal(number) is signal.SIG_DFL for number in (signal.SIGTERM, signal.SIGHUP)],
    "command": open("/proc/self/cmdline").read().split(chr(0))[:3],
    "imported_by": shared_part.PID,
    "parent": os.getppid(),
    "pid": os.getpid(),
}
print(json.dumps(told))
print("to the other stream", file=sys.stderr)
if "WAIT" in os.environ:
    threading.Event().wait(60)
sys.exit(7)
"""
PROGRAM = """
import json, os, signal, sys, threading
from pathlib import Path
from rollstream.clock import SystemClock
from rollstream_cli.cell.child import Child, ChildSpec
from rollstream_cli.cell.nursery import Nursery
folder = Path(os.environ["FOLDER"])
log = folder / "log"
signal.signal(signal.SIGTERM, lambda *_: None)
held = open(folder / "held", "w")
print("before the fork", end="")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    service = tmp_path / "rollstream_stand_in"
    service.mkdir()
    for name, code in {"__init__": "", "settings": "", "wiring": "", "__main__": SERVICE}.items():
        (service / f"{name}.py").write_text(code)
    (tmp_path / "shared_part.py").write_text("import os\nPID = os.getpid()\n")
    return tmp_path


def program(folder: Path, code: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM + code, "some", "more", "words", "so", "that", "there", "is", "room", "for", "a name"],
        env=os.environ | {"FOLDER": str(folder), "PYTHONPATH": str(folder)},
        cwd=folder,
        stdout=subprocess.PIPE,
        text=True,
    )


def told_by_service(log: Path) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(log.read_text().splitlines()[0])
    return told


RUN_ONE = """
with Nursery() as nursery:
    nursery.prepare(["shared_part"], stand_in=1)
    forked = nursery.take("stand_in")
    forked.let_go(environment={"ONLY": "this"}, log=log)
    print(json.dumps([os.getpid(), forked.pid, forked.wait(), forked.returncode]))
"""


def test_a_forked_process_lives_like_one_that_was_started(folder: Path) -> None:
    with program(folder, RUN_ONE) as running:
        said = running.communicate()[0]
    parent, pid, code, returncode = json.loads(said.removeprefix("before the fork"))
    assert (code, returncode) == (7, 7)
    told = told_by_service(folder / "log")
    assert told["environment"] == {"ONLY": "this"}
    assert told["command"] == [sys.executable, "-m", "rollstream_stand_in"]
    assert (told["arguments"], told["input"], told["session"], told["signals"]) == ([], "", True, [True, True])
    assert (told["parent"], told["pid"], told["imported_by"]) == (parent, pid, parent)
    assert (folder / "log").read_text().splitlines()[1:] == ["to the other stream"]


def test_nothing_that_was_open_in_the_command_is_open_in_a_forked_process(folder: Path) -> None:
    (folder / "rollstream_stand_in" / "__main__.py").write_text(
        "import os\nprint([os.readlink(f'/proc/self/fd/{name}') for name in os.listdir('/proc/self/fd')])"
    )
    with program(folder, RUN_ONE) as running:
        running.communicate()
    assert "held" not in (folder / "log").read_text()


def test_a_process_that_nobody_takes_ends_without_having_begun(folder: Path) -> None:
    code = """
with Nursery() as nursery:
    nursery.prepare([], stand_in=2)
    pids = [process.pid for process in nursery._waiting["stand_in"]]
print(json.dumps(pids))
"""
    with program(folder, code) as running:
        pids = json.loads(running.communicate()[0].removeprefix("before the fork"))
    assert len(pids) == 2 and not any(psutil.pid_exists(pid) for pid in pids)
    assert not (folder / "log").exists()


def test_a_forked_process_ends_with_the_command(folder: Path) -> None:
    code = RUN_ONE.replace('"ONLY": "this"', '"WAIT": "yes"').replace(
        "print(json", "print(json.dumps(forked.pid), flush=True); (json"
    )
    with program(folder, code) as running:
        assert running.stdout is not None
        pid = json.loads(running.stdout.readline().removeprefix("before the fork"))
        process = psutil.Process(pid)
        running.kill()
        process.wait(timeout=20.0)


def test_a_killed_process_comes_back_by_the_ordinary_way(folder: Path) -> None:
    code = """
again = "import os, threading; open('again', 'w').write(str(os.getpid())); threading.Event().wait(60)"
with Nursery() as nursery:
    nursery.prepare(["shared_part"], stand_in=1)
    command = (sys.executable, "-S", "-c", again)
    spec = ChildSpec(member="stand-in-0", role="stand_in", command=command, environment={"WAIT": "yes"}, log=log)
    child = Child(spec, clock=SystemClock(), on_hopeless=print, nursery=nursery)
    child.start()
    pause = threading.Event()
    while not log.exists() or "other stream" not in log.read_text():
        pause.wait(0.02)
    first = child.pid
    os.kill(first, signal.SIGKILL)
    while not Path("again").exists() or not Path("again").read_text():
        pause.wait(0.02)
    print(json.dumps([first, child.pid, child.restarts]))
    child.ask_to_stop()
    child.end(remaining_s=lambda: 10.0)
"""
    with program(folder, code) as running:
        first, second, restarts = json.loads(running.communicate(timeout=60)[0].removeprefix("before the fork"))
    assert told_by_service(folder / "log")["pid"] == first
    assert int((folder / "again").read_text()) == second != first
    assert restarts == 1


def test_a_process_with_two_threads_is_not_forked() -> None:
    done = threading.Event()
    other = threading.Thread(target=done.wait)
    other.start()
    try:
        with Nursery() as nursery:
            nursery.prepare(["shared_part"], stand_in=1)
            assert nursery.take("stand_in") is None
    finally:
        done.set()
        other.join()


def test_what_cannot_be_imported_is_left_to_who_needs_it() -> None:
    with Nursery() as nursery:
        nursery.prepare(["no_such_module_of_ours"])
        assert nursery.take("stand_in") is None
