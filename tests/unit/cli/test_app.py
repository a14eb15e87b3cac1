"""The surface of the command line, in processes of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


def rollstream(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "rollstream_cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False, timeout=60)


def test_help_lists_every_command(tmp_path: Path) -> None:
    shown = rollstream("--help", cwd=tmp_path)
    assert shown.returncode == 0
    commands = "train resume up down submit status logs scale pause stop checkpoint bench"
    assert all(f" {name} " in shown.stdout for name in commands.split())


def test_importing_the_surface_loads_nothing_heavy(tmp_path: Path) -> None:
    heavy = ["torch", "numpy", "gymnasium", "redis", "httpx", "pydantic", "fastapi", "matplotlib", "psutil", "rollstream.store"]
    code = f"import sys; import rollstream_cli.app; print([name for name in {heavy!r} if name in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert shown.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["train", "ppo", "--env", "CartPole-v1", "--set", "learning_rat=1"], 2, "did you mean 'learning_rate'"),
        (["train", "pppo", "--env", "CartPole-v1"], 2, "unknown algorithm 'pppo'; did you mean 'ppo'?"),
        (["train"], 2, "algorithm: is required"),
        (["train", "--file", "none.yaml"], 2, "cannot read none.yaml"),
        (["resume", "nothing"], 2, "no cell runs in"),
        (["status"], 2, "start one with `rollstream up`"),
        (["status", "--url", "nowhere"], 2, "the URL of a cell starts with http:// or https://"),
        (["logs"], 2, "holds no logs"),
        (["checkpoint", "verify", "none"], 5, "no checkpoint at none; it is no run"),
    ],
)
def test_a_foreseen_error_is_a_message_and_an_exit_code(tmp_path: Path, arguments: list[str], code: int, message: str) -> None:
    shown = rollstream(*arguments, cwd=tmp_path)
    assert shown.returncode == code
    assert shown.stderr.startswith("error: ")
    assert message in shown.stderr
    assert "Traceback" not in shown.stderr
    assert list(tmp_path.iterdir()) == []


def test_down_without_a_cell_says_so_and_succeeds(tmp_path: Path) -> None:
    shown = rollstream("down", "--json", cwd=tmp_path)
    assert shown.returncode == 0
    assert '"stopped": false' in shown.stdout


def test_checkpoints_are_listed_and_verified(tmp_path: Path) -> None:
    from rollstream.checkpoint import write_checkpoint

    facts = {"env_steps": 1_000, "updates": 7, "experiment": "ppo-abc123"}
    folder = tmp_path / "runs" / "ppo-abc123" / "checkpoints"
    for _ in range(2):
        write_checkpoint(folder, state={"count": 1}, facts=facts)
    listed = rollstream("checkpoint", "list", "ppo-abc123", cwd=tmp_path)
    assert listed.returncode == 0
    assert "1,000" in listed.stdout
    assert rollstream("checkpoint", "verify", "ppo-abc123", "--json", cwd=tmp_path).returncode == 0
    damaged = folder / "00000002"
    (damaged / "state.json").write_text("{}")
    refused = rollstream("checkpoint", "verify", str(damaged), cwd=tmp_path)
    assert refused.returncode == 5
    assert "1 of 1 checkpoint(s) cannot be trusted" in refused.stderr
