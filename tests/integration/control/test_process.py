"""`python -m rollstream_control` as a process: its start, its end, its last line when it cannot start."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rollstream.store import Address, Experiments, Members, Store


def environment(address: Address | None, **more: str) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("ROLLSTREAM_")}
    redis = {} if address is None else {"ROLLSTREAM_REDIS_URL": str(address)}
    return inherited | redis | {"ROLLSTREAM_MEMBER_ID": "control-0"} | more


def refused(address: Address | None, **more: str) -> tuple[int, dict[str, Any]]:
    """Exit code and last line of a control that cannot start."""
    ended = subprocess.run(
        [sys.executable, "-m", "rollstream_control"],
        env=environment(address, **more),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    lines = (ended.stdout + ended.stderr).strip().splitlines()
    last = lines[-1]
    return ended.returncode, json.loads(last) if last.startswith("{") else {"reason": last}


@pytest.fixture
def process(address: Address, store: Store) -> Iterator[subprocess.Popen[str]]:
    started = subprocess.Popen(
        [sys.executable, "-m", "rollstream_control"], env=environment(address), stdout=subprocess.PIPE, text=True
    )
    yield started
    started.kill()
    started.communicate()


def test_it_joins_the_cell_and_ends_with_0_on_sigterm(process: subprocess.Popen[str], store: Store, eventually: Any) -> None:
    eventually(lambda: Members(store).get("control-0"))
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=30)
    assert process.returncode == 0
    assert json.loads(output.strip().splitlines()[-1])["event"] == "stopped"
    assert Members(store).list() == []


def test_without_a_token_it_does_not_listen_to_the_world(address: Address) -> None:
    code, last = refused(address, ROLLSTREAM_HOST="0.0.0.0")
    assert code == 2
    assert "there is no token: set ROLLSTREAM_OPERATOR_TOKEN" in str(last)


def test_without_redis_settings_it_says_which_variable_is_missing() -> None:
    code, last = refused(None)
    assert code == 2
    assert "ROLLSTREAM_REDIS_URL: is required" in str(last)


def test_an_unreachable_redis_ends_it_after_the_deadline_with_3() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    code, last = refused(None, ROLLSTREAM_REDIS_URL=f"redis://127.0.0.1:{port}", ROLLSTREAM_REDIS_DEADLINE_S="0.5")
    assert code == 3
    assert f"127.0.0.1:{port}" in last["reason"]


def test_a_port_in_use_is_named(address: Address) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, last = refused(address, ROLLSTREAM_PORT=str(port))
    assert code == 2
    assert f"cannot listen on 127.0.0.1:{port}" in last["reason"]


def test_a_bad_experiment_file_ends_it_with_2_and_leaves_nothing(address: Address, store: Store, tmp_path: Path) -> None:
    path = tmp_path / "experiment.yaml"
    path.write_text("algorithm: pppo\nenvironment: {id: CartPole-v1}\n")
    code, last = refused(address, ROLLSTREAM_EXPERIMENT_FILE=str(path))
    assert code == 2
    assert "unknown algorithm 'pppo'; did you mean 'ppo'?" in last["reason"]
    assert Experiments(store).ids() == []
    assert Members(store).list() == []


def test_kubernetes_outside_of_a_cluster_is_a_clear_refusal(address: Address, tmp_path: Path) -> None:
    code, last = refused(
        address,
        ROLLSTREAM_BACKEND="kubernetes",
        ROLLSTREAM_ACTOR_DEPLOYMENT="cell-actor",
        KUBECONFIG=str(tmp_path / "nothing"),
        HOME=str(tmp_path),
    )
    assert code == 2
    assert "this is no pod with a service account" in last["reason"]
