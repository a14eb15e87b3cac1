"""Bad input: one clear error in time, the right exit code, and nothing half-started left behind."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rollstream.clock import SystemClock
from rollstream.store import Address, EmbeddedServer

BAD_INPUT, NO_REDIS, REDIS_REFUSES, FAILED = 2, 3, 4, 1


def require_one_message(text: str) -> None:
    assert [line.startswith("error: ") for line in text.splitlines()].count(True) == 1, text
    assert "Traceback" not in text


def require_refused(shell: Any, done: subprocess.CompletedProcess[str], *words: str, code: int = BAD_INPUT) -> None:
    """One message on standard error with these words, and no run."""
    assert done.returncode == code, done.stderr
    require_one_message(done.stderr)
    for word in words:
        assert word in done.stderr, done.stderr
    assert done.stdout == ""
    assert shell.runs == []
    assert not [path for path in shell.directory.rglob("*") if path.is_socket()]


# -- specs that the command line refuses by itself


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["ppoo"], ["unknown algorithm 'ppoo'; did you mean 'ppo'?"]),
        (["ppo", "--set", "learning_rat=1"], ["--set learning_rat: unknown setting; did you mean 'learning_rate'?"]),
        (["ppo", "--set", "learning_rate=fast"], ["settings.learning_rate: Input should be a valid number", "got 'fast'"]),
        (["ppo", "--set", "epochs=[1]"], ["settings.epochs: Input should be a valid integer", "got [1]"]),
        (["ppo", "--set", "epochs=0"], ["settings.epochs: Input should be greater than or equal to 1, got 0"]),
        (["ppo", "--set", "epochs"], ["--set epochs: must be key=value"]),
        (["ppo", "--actors", "0"], ["actors: Input should be greater than or equal to 1, got 0"]),
        (
            ["dqn", "--set", "min_items=99999"],
            ["min_items (99999) must be <= table_items (10000), else no update can ever start"],
        ),
        (["--file", "missing.yaml"], ["cannot read missing.yaml: No such file or directory"]),
    ],
)
def test_a_bad_option_is_refused_before_anything_starts(shell: Any, arguments: list[str], words: list[str]) -> None:
    require_refused(shell, shell.run("train", *arguments, "--env", "CartPole-v1"), *words)


def test_a_file_is_refused_with_every_bad_field(shell: Any) -> None:
    (shell.directory / "spec.yaml").write_text(
        "algorithm: ppo\nenvironment: {id: CartPole-v1}\nactors: many\nstop: {mean_retrun: 4}\n"
        "settings: {epochs: 0, hidden: wide}\n"
    )
    done = shell.run("train", "--file", "spec.yaml")
    require_refused(
        shell,
        done,
        "the experiment has 4 bad field(s):",
        "actors: Input should be a valid integer",
        "stop.mean_retrun: unknown setting; did you mean 'mean_return'?",
        "settings.epochs: Input should be greater than or equal to 1, got 0",
        "settings.hidden: Input should be a list, got 'wide'",
    )


# -- specs that are refused at submission


@pytest.fixture(scope="module")
def cell(make_shell: Any, their_code: Any) -> Iterator[Any]:
    """A shell in which a cell is up."""
    with make_shell() as shell:
        allowed = {"PYTHONPATH": their_code.path, "ROLLSTREAM_ENVIRONMENT_MODULES": "their_env"}
        done = shell.run("up", "--actors", "0", "--replay-shards", "0", **allowed)
        assert done.returncode == 0, done.stderr
        yield shell
        assert shell.run("down").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["ppo", "--env", "CartPole-v11"], ["unknown environment 'CartPole-v11'", "did you mean 'CartPole-v1'?"]),
        (
            ["ppo", "--env", "their_env:Reading"],
            ["observation.text: a Text space cannot be stored in rows of fixed size; encode it in a wrapper"],
        ),
        (["dqn", "--env", "Pendulum-v1"], ["needs a Discrete space, got Box [1]", "DiscretizeAction"]),
        (["ppo", "--env", "os:system"], ["the module 'os' is not allowed here (allowed: their_env)"]),
        (
            ["dqn", "--env", "CartPole-v1", "--set", "ratio_tolerance_items=8"],
            ["2 * tolerance_items >= batch_items + samples_per_insert fails: 16 < 512 + 8", "would wait for each other"],
        ),
    ],
)
def test_what_cannot_work_is_refused_at_submission(cell: Any, arguments: list[str], words: list[str]) -> None:
    algorithm, *rest = arguments
    done = cell.run("submit", "--algo", algorithm, *rest)
    assert done.returncode == BAD_INPUT, done.stderr
    require_one_message(done.stderr)
    for word in words:
        assert word in done.stderr
    assert cell.json("status", "--json")["experiments"] == []


@pytest.mark.parametrize("mode", ["cell", "inline"])
def test_an_unknown_environment_leaves_nothing_of_a_run(shell: Any, mode: str) -> None:
    done = shell.run("train", "ppo", "--env", "CartPole-v11", *(["--inline"] if mode == "inline" else []))
    require_refused(shell, done, "unknown environment 'CartPole-v11'", "did you mean 'CartPole-v1'?")


def test_a_space_that_cannot_be_stored_is_refused_inline(shell: Any, their_code: Any) -> None:
    done = shell.run("train", "ppo", "--env", "their_env:Reading", "--inline", PYTHONPATH=their_code.path)
    require_refused(shell, done, "observation.text: a Text space cannot be stored in rows of fixed size")


def test_inline_mode_refuses_a_checkpoint(shell: Any) -> None:
    done = shell.run("train", "ppo", "--env", "CartPole-v1", "--inline", "--from-checkpoint", "somewhere")
    require_refused(shell, done, "inline mode starts fresh, got from_checkpoint 'somewhere'; train without --inline")


# -- Redis


@pytest.fixture
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    """A Redis that asks for a password."""
    with EmbeddedServer(tmp_path_factory.mktemp("redis"), clock=SystemClock(), settings={"requirepass": "right"}) as server:
        yield server.address


@pytest.mark.parametrize(
    ("command", "url", "where"),
    [
        (["train", "ppo", "--env", "CartPole-v1"], "unix:///nowhere/redis.sock", "unix:///nowhere/redis.sock?db=0"),
        (["up", "--dir", "cell"], "redis://127.0.0.1:1/0", "redis://127.0.0.1:1/0"),
    ],
)
def test_a_redis_that_is_not_there_is_given_up_in_time(shell: Any, command: list[str], url: str, where: str) -> None:
    done = shell.run(*command, ROLLSTREAM_REDIS_URL=url)
    require_refused(shell, done, f"Redis at {where} did not report", "start it, or correct ROLLSTREAM_REDIS_URL", code=NO_REDIS)
    assert not (shell.directory / "cell").exists()


def test_a_wrong_password_is_refused_at_once_and_never_shown(shell: Any, locked: Address) -> None:
    done = shell.run("up", "--dir", "cell", ROLLSTREAM_REDIS_URL=str(locked), ROLLSTREAM_REDIS_PASSWORD="wrong-one")
    require_refused(shell, done, "refused to report its version", "check user and password", code=REDIS_REFUSES)
    assert "wrong-one" not in done.stderr
    assert not (shell.directory / "cell").exists()


# -- ports and folders


@pytest.fixture
def taken() -> Iterator[int]:
    """A port on which somebody listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def test_a_port_in_use_is_named(shell: Any, taken: int) -> None:
    done = shell.run("up", "--dir", "cell", "--port", str(taken))
    require_refused(shell, done, f"cannot listen on 127.0.0.1:{taken} (Address already in use); free the port, or choose another")
    assert not (shell.directory / "cell").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["train", "ppo", "--env", "CartPole-v1", "--runs-dir", "file"],
            "cannot write to the folder of runs file (it is a file)",
        ),
        (
            ["train", "ppo", "--env", "CartPole-v1", "--runs-dir", "file/x"],
            "cannot write to the folder of runs file/x (Not a dir",
        ),
        (
            ["train", "ppo", "--env", "CartPole-v1", "--runs-dir", "file", "--inline"],
            "cannot write to the folder of the run file/",
        ),
        (["train", "ppo", "--env", "CartPole-v1", "--json", "file/out"], "cannot write to the folder of --json"),
        (["up", "--dir", "file/cell"], "cannot write to the folder of the cell's logs"),
    ],
)
def test_a_folder_that_cannot_be_written_is_named(shell: Any, arguments: list[str], words: str) -> None:
    (shell.directory / "file").write_text("")
    require_refused(shell, shell.run(*arguments), words, "choose another")


FULL_DISK = """
import os, resource, sys
command = os.getpid()

def limit(event, arguments):
    # whoever writes below runs/, but for the command itself, is the learner: no file of its grows beyond 16 KiB
    if event == "open" and "/runs/" in str(arguments[0]) and (os.getpid() != command or "rollstream_learner" in sys.orig_argv):
        resource.setrlimit(resource.RLIMIT_FSIZE, (16384, 16384))

sys.addaudithook(limit)
"""


def test_a_disk_that_is_full_at_the_checkpoint_is_told_and_leaves_no_half_checkpoint(shell: Any, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(FULL_DISK)
    done = shell.run("train", "ppo", "--env", "CartPole-v1", "--stop-steps", "1000", PYTHONPATH=str(tmp_path))
    assert done.returncode == FAILED
    message = done.stderr[done.stderr.index("error: ") :]
    assert "environment steps reached 1000, but what was learned is not saved: cannot write checkpoint" in message
    assert "File too large; free or enlarge the disk" in message and "Traceback" not in message
    assert "cannot write reports and pictures to" in done.stderr
    [run] = shell.runs
    folder = shell.directory / "runs" / run
    assert list((folder / "checkpoints").iterdir()) == []
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["phase"] == "failed" and summary["checkpoint"] is None and summary["env_steps"] >= 1000


# -- services on their own


def last_words(role: str, **environment: str) -> tuple[int, dict[str, Any]]:
    """Exit code and last line of a service that cannot start."""
    clean = {"ROLLSTREAM_SHARD": "0", "ROLLSTREAM_BACKEND": "none", "ROLLSTREAM_REDIS_DEADLINE_S": "0.5"}
    command = [sys.executable, "-m", f"rollstream_{role}"]
    done = subprocess.run(command, env=clean | environment, capture_output=True, text=True, check=False, timeout=60)
    assert "Traceback" not in done.stdout + done.stderr
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert told["exit_code"] == done.returncode
    return done.returncode, told


ROLES = pytest.mark.parametrize("role", ["actor", "learner", "replay", "control"])


@ROLES
def test_a_service_without_redis_says_so_and_exits_with_3(role: str, tmp_path: Path) -> None:
    code, told = last_words(role, ROLLSTREAM_REDIS_URL="redis://127.0.0.1:1/0", ROLLSTREAM_RUNS_DIR=str(tmp_path))
    assert (code, told["level"], told["role"]) == (NO_REDIS, "error", role)
    assert "Redis at redis://127.0.0.1:1/0 did not report its version and memory within" in told["reason"]


@ROLES
def test_a_service_whose_port_is_taken_says_so_and_exits_with_2(role: str, tmp_path: Path, address: Address, taken: int) -> None:
    code, told = last_words(
        role, ROLLSTREAM_REDIS_URL=str(address), ROLLSTREAM_PORT=str(taken), ROLLSTREAM_RUNS_DIR=str(tmp_path)
    )
    assert code == BAD_INPUT
    assert f"cannot listen on 127.0.0.1:{taken} (Address already in use); free the port, or set ROLLSTREAM_PORT" in told["reason"]


@ROLES
def test_a_service_with_bad_variables_lists_them_and_exits_with_2(role: str) -> None:
    code, told = last_words(role, ROLLSTREAM_PORT="many", ROLLSTREAM_LOG_LEVEL="loud")
    assert code == BAD_INPUT
    assert "3 bad environment variable(s): " in told["reason"]
    for name in ("ROLLSTREAM_REDIS_URL: is required", "ROLLSTREAM_PORT: ", "ROLLSTREAM_LOG_LEVEL: "):
        assert name in told["reason"]


def test_a_learner_that_cannot_write_its_runs_says_so(tmp_path: Path, address: Address) -> None:
    (tmp_path / "file").write_text("")
    code, told = last_words("learner", ROLLSTREAM_REDIS_URL=str(address), ROLLSTREAM_RUNS_DIR=str(tmp_path / "file"))
    assert code == BAD_INPUT
    assert f"cannot write to the folder of runs {tmp_path / 'file'} (it is a file); free space there, or set" in told["reason"]


def test_a_service_with_a_wrong_password_exits_with_4(locked: Address) -> None:
    code, told = last_words("actor", ROLLSTREAM_REDIS_URL=str(locked), ROLLSTREAM_REDIS_PASSWORD="wrong-one")
    assert code == REDIS_REFUSES
    assert "check user and password" in told["reason"] and "wrong-one" not in json.dumps(told)
