"""A Redis that is not there, or says no: a clear error in time, and nothing left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rollstream.clock import SystemClock
from rollstream.store import EmbeddedServer

TRAIN = ("train", "ppo", "--env", "CartPole-v1", "--stop-steps", "1000")


def test_an_unreachable_redis(shell: Any) -> None:
    done = shell.run(*TRAIN, ROLLSTREAM_REDIS_URL="redis://127.0.0.1:9")
    assert done.returncode == 3
    assert "127.0.0.1:9" in done.stderr
    assert "Traceback" not in done.stderr
    assert shell.runs == []


def test_a_wrong_password(shell: Any, tmp_path_factory) -> None:  # type: ignore[no-untyped-def]
    directory: Path = tmp_path_factory.mktemp("redis")
    server = EmbeddedServer(directory, clock=SystemClock(), settings={"requirepass": "right-word"})
    with server:
        done = shell.run(
            *TRAIN, ROLLSTREAM_REDIS_URL=f"unix://{server.address.path}?db=0", ROLLSTREAM_REDIS_PASSWORD="wrong-word"
        )
    assert done.returncode == 4
    assert "error: " in done.stderr
    assert "wrong-word" not in done.stderr
    assert "Traceback" not in done.stderr
    assert shell.runs == []


def test_a_malformed_address(shell: Any) -> None:
    done = shell.run(*TRAIN, ROLLSTREAM_REDIS_URL="localhost:6379")
    assert done.returncode == 2
    assert "Redis address must start with" in done.stderr
    assert shell.runs == []
