"""`rollstream train` and `resume` with all services and a real server."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

SHORT = ("--set", "evaluation_episodes=2", "--set", "rollout_steps=64", "--envs-per-actor", "4")
"""A run that is over soon after it has begun."""
TRAIN = ("train", "ppo", "--env", "CartPole-v1", "--name", "run", *SHORT)
FAILING = """
import gymnasium

class Gripper(gymnasium.Wrapper):
    def __init__(self):
        super().__init__(gymnasium.make("CartPole-v1"))
        self.count = 0

    def step(self, action):
        self.count += 1
        if self.count > 100:
            raise ValueError("the gripper is stuck")
        return self.env.step(action)
"""


def test_a_run_ends_with_a_summary_and_leaves_no_process(shell: Any) -> None:
    done = shell.run(*TRAIN, "--stop-steps", "3000", "--json", "-")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["phase"] == "succeeded"
    assert summary["env_steps"] >= 3_000
    assert summary["actors_contributed"] == 2
    assert summary["evaluation_episodes"] == 2
    assert summary["lag"] is not None
    assert summary["start_to_first_update_s"] > 0.0
    assert summary["rss_total_mb"] > sum((summary["rss_mb"]["cli"], summary["rss_mb"]["redis"]))
    assert len(summary["weights_sha256"]) == 64
    directory = shell.directory / "runs" / summary["experiment"]
    assert shell.runs == [summary["experiment"]]
    assert json.loads((directory / "summary.json").read_text()) == summary
    assert Path(summary["checkpoint"]).is_dir()
    assert Path(summary["learning_curve"]).is_file()
    assert shell.run("checkpoint", "verify", summary["experiment"]).returncode == 0
    assert "learner-0" in shell.run("logs", "--dir", str(directory), "-n", "100").stdout


def test_ctrl_c_ends_cleanly_and_the_run_can_be_resumed(shell: Any) -> None:
    process = shell.start(*TRAIN)
    shell.until_said(process, "env steps")
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    (run,) = shell.runs
    assert f"resume with: rollstream resume runs/{run}" in errors
    assert "checkpoint" in output
    before = json.loads((shell.directory / "runs" / run / "summary.json").read_text())
    assert before["phase"] == "stopped"

    wanted = before["env_steps"] + 2_000
    after = shell.json("resume", run, "--stop-steps", str(wanted), "--json", "-")
    assert after["phase"] == "succeeded"
    assert after["env_steps"] >= wanted
    assert after["updates"] > before["updates"]
    assert after["wall_s"] > before["wall_s"]
    again = shell.run("resume", after["experiment"])
    assert again.returncode == 2
    assert "has reached its stop rule" in again.stderr


def test_a_run_whose_command_was_killed_is_continued_under_its_id(shell: Any) -> None:
    process = shell.start(*TRAIN, "--set", "checkpoint.every_s=0.5")
    shell.until_said(process, "checkpoint 1")
    process.kill()
    process.communicate(timeout=60)
    shell.until(lambda: not shell.processes())
    (run,) = shell.runs
    newest = shell.json("checkpoint", "list", run, "--json")["checkpoints"][-1]
    process = shell.start("resume", run, "--json", "out.json")
    shell.until_said(process, "resumed from checkpoint")
    shell.until_said(process, "env steps")
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    summary = json.loads((shell.directory / "out.json").read_text())
    assert summary["experiment"] == run
    assert summary["env_steps"] > newest["env_steps"]
    assert shell.runs == [run]


def test_an_exception_in_the_environment_is_one_message_with_the_users_traceback(shell: Any) -> None:
    (shell.directory / "robots.py").write_text(FAILING)
    done = shell.run("train", "ppo", "--env", "robots:Gripper", *SHORT)
    assert done.returncode == 1
    assert done.stderr.count("error: ") == 1
    message = done.stderr.split("error: ", 1)[1]
    assert "the gripper is stuck" in message.splitlines()[0]
    assert "actor-" in message.splitlines()[0]
    assert "flow.py:" in message
    assert 'robots.py", line 12, in step' in message
    assert "rollstream_cli" not in message
    (run,) = shell.runs
    assert json.loads((shell.directory / "runs" / run / "summary.json").read_text())["phase"] == "failed"


def test_a_spec_that_the_cell_refuses_leaves_nothing_behind(shell: Any) -> None:
    done = shell.run("train", "ppo", "--env", "CartPol-v1")
    assert done.returncode == 2
    assert "did you mean 'CartPole-v1'" in done.stderr
    assert "Traceback" not in done.stderr
    assert shell.runs == []


def test_inline_mode_needs_no_cell_and_repeats_itself(shell: Any) -> None:
    first, second = (
        shell.json(
            "train", "ppo", "--env", "CartPole-v1", "--inline", "--seed", "1", "--stop-steps", "2000", *SHORT, "--json", "-"
        )
        for _ in range(2)
    )
    assert first["weights_sha256"] == second["weights_sha256"]
    assert first["mean_return"] == second["mean_return"]


@pytest.mark.parametrize("settings", [(), ("recurrent=gru", "normalize_observations=true", "mode=numpy")])
def test_inline_ppo_trains_on_box_actions(shell: Any, settings: tuple[str, ...]) -> None:
    given = [word for setting in settings for word in ("--set", setting)]
    summary = shell.json(
        "train", "ppo", "--env", "Pendulum-v1", "--inline", "--seed", "1", "--stop-steps", "2000", *SHORT, *given, "--json", "-"
    )
    assert summary["env_steps"] >= 2000
    assert summary["updates"] > 0
    assert summary["mean_return"] < 0
