"""The supervisor with a real embedded server; services are small stand-ins that are real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Queue

import psutil
import pytest

from rollstream.clock import SystemClock
from rollstream.errors import ConfigError, StoreUnavailable
from rollstream.store import Store, keys, parse_address
from rollstream.store.changes import Changes
from rollstream_cli.cell.local_cell import LocalCell, free_port
from rollstream_cli.cell.roles import CellPlan, Role, command_of, environment_of
from rollstream_cli.leash import leashed

STAND_IN = """
import os, signal, sys, threading
def leave(*_):
    with open(os.environ['ORDER'], 'a') as file:
        file.write(os.environ['ROLLSTREAM_MEMBER_ID'] + chr(10))
    sys.exit(0)
signal.signal(signal.SIGTERM, leave)
threading.Event().wait(60)
"""


def stand_in(_: Role) -> tuple[str, ...]:
    return (*leashed(), sys.executable, "-S", "-c", STAND_IN)


def until(condition: Callable[[], object], *, timeout_s: float = 20.0) -> None:
    pause = threading.Event()
    for _ in range(int(timeout_s / 0.02)):
        if condition():
            return
        pause.wait(0.02)
    raise AssertionError("the condition did not become true in time")


def plan_in(directory: Path, **changes: object) -> CellPlan:
    settings = {
        "directory": directory,
        "runs_dir": directory / "runs",
        "server_dir": directory / "server",
        "actors": 2,
        "replay_shards": 1,
        "operator_token": "a-token-for-tests",
        "environment": {"PATH": os.environ["PATH"], "ORDER": str(directory / "order")},
    }
    return CellPlan(**{**settings, **changes})  # type: ignore[arg-type]


@pytest.fixture
def failures() -> Queue[str]:
    return Queue()


@pytest.fixture
def cell(tmp_path: Path, failures: Queue[str]) -> Iterator[LocalCell]:
    cell = LocalCell(plan_in(tmp_path), clock=SystemClock(), on_failure=failures.put, command=stand_in)
    yield cell
    cell.stop(grace_s=0.0)


def is_listening_to_sigterm(cell: LocalCell) -> bool:
    """All stand-ins have come so far that SIGTERM makes them write their name."""
    return all(
        int(field.split()[1], 16) & (1 << (signal.SIGTERM - 1))
        for member, pid in cell.processes().items()
        if member != "redis"
        for field in Path(f"/proc/{pid}/status").read_text().splitlines()
        if field.startswith("SigCgt:")
    )


def test_a_cell_has_a_server_and_all_roles(cell: LocalCell) -> None:
    cell.start()
    until(lambda: len(cell.processes()) == 6)
    assert sorted(cell.processes()) == ["actor-0", "actor-1", "control", "learner-0", "redis", "replay-0"]
    assert cell.url == f"http://127.0.0.1:{cell.port}"


def test_processes_stop_in_order_and_the_server_last(cell: LocalCell, tmp_path: Path) -> None:
    cell.start()
    until(lambda: len(cell.processes()) == 6 and is_listening_to_sigterm(cell))
    pids = list(cell.processes().values())
    assert cell.stop(grace_s=20.0) == []
    order = (tmp_path / "order").read_text().split()
    assert set(order[:2]) == {"actor-0", "actor-1"}
    assert order[2:] == ["learner-0", "replay-0", "control"]
    assert not any(psutil.pid_exists(pid) for pid in pids)


def test_without_work_nobody_waits_for_the_end_of_another(cell: LocalCell, tmp_path: Path) -> None:
    cell.start()
    until(lambda: len(cell.processes()) == 6 and is_listening_to_sigterm(cell))
    stubborn = cell.processes()["actor-0"]
    os.kill(stubborn, signal.SIGSTOP)
    hurry = threading.Event()
    stopping = threading.Thread(target=lambda: cell.stop(grace_s=60.0, hurry=hurry, idle=True))
    stopping.start()
    try:
        until(lambda: len((tmp_path / "order").read_text().split()) == 4 if (tmp_path / "order").exists() else False)
    finally:
        hurry.set()
        stopping.join()


def test_the_wanted_number_of_actors_is_obeyed(cell: LocalCell) -> None:
    cell.start()
    store = Store(parse_address(cell.redis_url), clock=SystemClock())
    for wanted in (4, 1):
        store.run("scale", lambda client, wanted=wanted: client.set(keys.wanted_actors(), wanted))
        Changes(store).announce("cell", "wanted_actors")
        names = [f"actor-{number}" for number in range(wanted)]
        until(lambda names=names: sorted(name for name in cell.processes() if name.startswith("actor")) == names)
    store.close()


def test_a_killed_server_comes_back_with_its_data(cell: LocalCell) -> None:
    cell.start()
    store = Store(parse_address(cell.redis_url), clock=SystemClock())
    store.run("write", lambda client: client.set("rs:test", "1"))
    store.run("sync", lambda client: client.bgrewriteaof())
    until(lambda: not store.run("look", lambda client: client.info("persistence"))["aof_rewrite_in_progress"])
    before = cell.processes()["redis"]
    os.kill(before, signal.SIGKILL)
    until(lambda: cell.processes().get("redis") not in (None, before))
    assert store.run("read", lambda client: client.get("rs:test")) == b"1"
    assert cell.restarts()["redis"] == 1
    store.close()


def test_scaling_still_works_after_the_server_was_killed(cell: LocalCell) -> None:
    cell.start()
    before = cell.processes()["redis"]
    os.kill(before, signal.SIGKILL)
    store = Store(parse_address(cell.redis_url), clock=SystemClock())
    store.run("scale", lambda client: client.set(keys.wanted_actors(), 3))
    Changes(store).announce("cell", "wanted_actors")
    until(lambda: "actor-2" in cell.processes())
    store.close()


def test_a_member_that_can_never_work_fails_the_cell(tmp_path: Path, failures: Queue[str]) -> None:
    def command(role: Role) -> tuple[str, ...]:
        code = "print('no such setting'); raise SystemExit(2)" if role == "learner" else STAND_IN
        return (*leashed(), sys.executable, "-S", "-c", code)

    cell = LocalCell(plan_in(tmp_path), clock=SystemClock(), on_failure=failures.put, command=command)
    cell.start()
    assert "learner-0 cannot work (exit code 2): no such setting" in failures.get(timeout=20)
    cell.stop(grace_s=0.0)


def test_stopping_twice_and_stopping_what_never_started_is_harmless(cell: LocalCell) -> None:
    cell.stop()
    cell.stop()


def test_a_port_in_use_is_refused_and_nothing_is_started(tmp_path: Path, failures: Queue[str]) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        cell = LocalCell(plan_in(tmp_path, port=port), clock=SystemClock(), on_failure=failures.put, command=stand_in)
        with pytest.raises(ConfigError, match=f"cannot listen on 127.0.0.1:{port}"):
            cell.start()
    assert cell.processes() == {}


def test_a_free_port_is_taken_when_none_is_given() -> None:
    assert free_port("127.0.0.1", 0) > 0


def test_an_unreachable_redis_is_refused_and_nothing_is_started(tmp_path: Path, failures: Queue[str]) -> None:
    plan = plan_in(tmp_path, redis_url=f"unix://{tmp_path}/none.sock")
    cell = LocalCell(plan, clock=SystemClock(), on_failure=failures.put, command=stand_in, redis_deadline_s=0.2)
    with pytest.raises(StoreUnavailable):
        cell.start()
    assert cell.processes() == {}


def test_no_process_survives_a_supervisor_that_is_killed(tmp_path: Path) -> None:
    code = f"""
import json, os, sys, threading
from pathlib import Path
from rollstream.clock import SystemClock
from rollstream_cli.cell.local_cell import LocalCell
from rollstream_cli.cell.roles import CellPlan
from rollstream_cli.leash import leashed
directory = Path({str(tmp_path)!r})
plan = CellPlan(directory=directory, runs_dir=directory, server_dir=directory / "server", actors=2, replay_shards=1,
                environment=dict(os.environ))
command = lambda role: (*leashed(), sys.executable, "-S", "-c", "import threading; threading.Event().wait(60)")
cell = LocalCell(plan, clock=SystemClock(), on_failure=print, command=command)
cell.start()
while len(cell.processes()) < 6:
    threading.Event().wait(0.02)
print(json.dumps(cell.processes()), flush=True)
threading.Event().wait(60)
"""
    import json

    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as supervisor:
        assert supervisor.stdout is not None
        processes = json.loads(supervisor.stdout.readline())
        supervisor.kill()
    assert len(processes) == 6
    until(lambda: not any(psutil.pid_exists(pid) for pid in processes.values()))


def test_the_environment_makes_a_process_this_member_of_this_cell(tmp_path: Path) -> None:
    outer = {"ROLLSTREAM_MEMBER_ID": "other", "ROLLSTREAM_PORT": "1", "ROLLSTREAM_TOKEN": "t", "HOME": "/h"}
    plan = plan_in(tmp_path, environment=outer)
    actor = environment_of(plan, "actor", member="actor-3", number=3, redis_url="unix:///s", port=80)
    assert actor["ROLLSTREAM_MEMBER_ID"] == "actor-3"
    assert actor["ROLLSTREAM_REDIS_URL"] == "unix:///s"
    assert actor["HOME"] == "/h"
    assert actor["OPENBLAS_NUM_THREADS"] == "1"
    assert not {"ROLLSTREAM_PORT", "ROLLSTREAM_TOKEN", "ROLLSTREAM_OPERATOR_TOKEN"} & actor.keys()
    control = environment_of(plan, "control", member="control", number=0, redis_url="unix:///s", port=80)
    assert control["ROLLSTREAM_PORT"] == "80"
    assert control["ROLLSTREAM_BACKEND"] == "local"
    assert control["ROLLSTREAM_OPERATOR_TOKEN"] == "a-token-for-tests"
    replay = environment_of(plan, "replay", member="replay-1", number=1, redis_url="unix:///s", port=80)
    assert replay["ROLLSTREAM_SHARD"] == "1"
    learner = environment_of(plan, "learner", member="learner-0", number=0, redis_url="unix:///s", port=80)
    assert learner["ROLLSTREAM_RUNS_DIR"] == str(tmp_path / "runs")
    assert learner["OPENBLAS_NUM_THREADS"] == "1" and learner["OMP_NUM_THREADS"] == "1"


def test_a_role_is_a_module_on_the_leash_of_this_process() -> None:
    assert command_of("actor")[0] == sys.executable
    assert command_of("actor")[2:] == (str(os.getpid()), "-m", "rollstream_actor")
