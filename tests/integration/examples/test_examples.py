"""The examples of the documentation run as they stand there."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from rollstream.config import EnvironmentSpec, ExperimentSpec, load
from rollstream.envs import inspect_environment
from rollstream.graph.component_test import component_test
from rollstream_cli.document import SpecOptions, build_spec
from rollstream_cli.inline import run

EXAMPLES = Path(__file__).resolve().parents[3] / "docs" / "examples"
SMALL = {"actors": 1, "envs_per_actor": 4, "seed": 1, "evaluation_episodes": 4}


def train(document: dict[str, Any], tmp_path: Path, *, allow: tuple[str, ...] = ()) -> dict[str, Any]:
    spec = load(ExperimentSpec, {**SMALL, **document}, what="experiment spec")
    return run(spec, runs_dir=tmp_path, report=lambda _: None, allow=allow)


@pytest.fixture
def actor_critic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package `actor-critic` as if it were installed."""
    info = tmp_path / "actor_critic-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: actor-critic\nVersion: 0.1.0\n")
    (info / "entry_points.txt").write_text("[rollstream.algorithms]\nactor-critic = actor_critic:ALGORITHM\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.syspath_prepend(str(EXAMPLES / "actor-critic"))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)


@pytest.mark.usefixtures("actor_critic")
def test_an_algorithm_from_an_installed_package_trains(tmp_path: Path) -> None:
    document = {"algorithm": "actor-critic", "environment": {"id": "CartPole-v1"}, "stop": {"env_steps": 1024}}
    summary = train(document, tmp_path)
    assert summary["env_steps_trained"] == summary["env_steps"] >= 1024
    assert summary["updates"] == summary["version"] - 1  # one update a round, and one publication after it
    assert summary["evaluation_episodes"] == 4


@pytest.mark.usefixtures("actor_critic")
def test_its_loss_is_the_same_in_all_modes() -> None:
    from actor_critic.agent import ActorCriticAgent, ActorCriticConfig, ActorCriticLoss

    found = inspect_environment(EnvironmentSpec(id="CartPole-v1"), allow=())
    agent = ActorCriticAgent(ActorCriticConfig(), observation=found.observation_leaves, actions=found.action_leaves)
    component_test(ActorCriticLoss(agent.policy))


@pytest.mark.usefixtures("actor_critic")
def test_the_entry_point_of_the_package_is_the_one_that_the_test_stands_in_for() -> None:
    project = (EXAMPLES / "actor-critic" / "pyproject.toml").read_text()
    assert '[project.entry-points."rollstream.algorithms"]\nactor-critic = "actor_critic:ALGORITHM"' in project


def test_an_environment_of_ones_own_trains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    document = {"algorithm": "ppo", "environment": {"id": "corridor:Corridor"}, "stop": {"env_steps": 4096}}
    summary = train(document, tmp_path, allow=("corridor",))
    assert summary["episodes"] > 0
    assert summary["mean_return"] <= 0.91  # the shortest way


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.name)
def test_a_spec_is_accepted(file: Path) -> None:
    spec = build_spec(SpecOptions(file=file))
    assert spec.algorithm == yaml.safe_load(file.read_text())["algorithm"]


def test_recorded_frames_become_batches_of_stacks(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLES / "frames.py"), run_name="__main__")
    first, *batches = capsys.readouterr().out.splitlines()
    assert int(first.split("1/")[1].split()[0]) >= 20
    assert batches == ["observation (32, 4, 84, 84) torch.uint8, next (32, 4, 84, 84), reward 1.0"] * 3


def test_prioritized_replay_in_one_process_keeps_its_ratio(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLES / "replay_local.py"), run_name="__main__")
    written, batch = capsys.readouterr().out.splitlines()
    ratio = float(written.split("each sampled ")[1].split()[0])
    assert 3.5 <= ratio <= 4.2
    assert batch.startswith("a batch: observation (64, 4, 4), weights from")


def test_an_archive_becomes_sequences(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLES / "replay_offline.py"), run_name="__main__")
    loaded, batch = capsys.readouterr().out.splitlines()
    assert loaded == "1020 rows of 20 episodes made 180 sequences"
    assert batch == "a batch: (32, 16, 3), its cores begin at column 5"


def test_a_new_loss_agrees_on_three_backends_and_with_finite_differences(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLES / "new_loss.py"), run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == [f"loss by {mode}" for mode in ("numpy", "torch", "jax", "gradient")]


def test_two_ranks_end_with_equal_weights_that_are_printed() -> None:
    pytest.importorskip("torch")
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "data_parallel.py")], capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr  # `require_equal` raises otherwise
    assert re.fullmatch(r"[0-9a-f]{64}\n", done.stdout)


def test_stacked_frames_are_an_image_with_as_many_channels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    found = inspect_environment(EnvironmentSpec(id="stacked_frames:make"), allow=("stacked_frames",))
    assert [leaf.shape for leaf in found.observation_leaves] == [(4, 24, 24)]
    document = {
        "algorithm": "ppo",
        "environment": {"id": "stacked_frames:make"},
        "settings": {"convolutions": "atari", "channels": "first", "rollout_steps": 64, "mode": "numpy"},
        "stop": {"env_steps": 256},
    }
    summary = train(document, tmp_path, allow=("stacked_frames",))
    assert summary["updates"] > 0 and 0.0 <= summary["mean_return"] <= 32.0
