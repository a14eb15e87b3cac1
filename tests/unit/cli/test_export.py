"""`rollstream export`, from a checkpoint as the learner writes it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from rollstream.algorithms import make_agent
from rollstream.checkpoint import write_checkpoint
from rollstream.config import ExperimentSpec
from rollstream.envs import inspect_environment
from rollstream.errors import CheckpointError, ConfigError
from rollstream.graph import build_acting
from rollstream_cli.app import app
from rollstream_cli.saved_policy import SavedPolicy, read_saved_policy

TOY = "rollstream.envs.toy"
SPECS: dict[str, dict[str, Any]] = {
    "ppo": {"algorithm": "ppo", "settings": {"mode": "torch-graph"}, "environment": {"id": f"{TOY}:NestedEnvironment"}},
    "dqn": {"algorithm": "dqn", "environment": {"id": f"{TOY}:PickEnvironment", "kwargs": {"levels": 3, "start": -1}}},
}


@pytest.fixture(params=SPECS)
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A run's folder with one checkpoint."""
    pytest.importorskip("torch")
    spec = ExperimentSpec.model_validate({"name": "toy", **SPECS[request.param]})
    seen = inspect_environment(spec.environment, allow=[TOY])
    settings = {**spec.settings, "mode": "torch"}
    agent = make_agent(spec.algorithm, settings, observation=seen.observation_leaves, actions=seen.action_leaves)
    facts = {
        "release": "0.1",
        "experiment": "toy-00abcd",
        "spec": spec.model_dump(mode="json"),
        "spec_hash": spec.hash,
        "version": 7,
        "env_steps": 1_200,
        "updates": 30,
    }
    folder = tmp_path / "runs" / "toy-00abcd"
    write_checkpoint(folder / "checkpoints", state={"agent": agent.learning(seed=5).state()}, facts=facts)
    return folder


def _read(run: Path) -> SavedPolicy:
    return read_saved_policy(str(run), runs_dir=run.parent, environment={})


def _observation(saved: SavedPolicy, rows: int) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(0)
    columns = {}
    for leaf in saved.observation:
        low, high = (leaf.starts[0], leaf.starts[0] + leaf.counts[0]) if leaf.counts else (0, 2)
        columns[leaf.name] = generator.integers(low, high, (rows, *leaf.shape)).astype(leaf.dtype)
    return columns


def _export(run: Path, to: Path, *more: str) -> dict[str, Any]:
    done = CliRunner().invoke(app, ["export", run.name, "--to", str(to), "--runs-dir", str(run.parent), *more])
    assert done.exit_code == 0, done.output
    about: dict[str, Any] = json.loads((to / "metadata.json").read_text())
    return about


@pytest.mark.parametrize("form", ["onnx", "pt2"])
def test_the_file_acts_as_the_policy_of_the_checkpoint(run: Path, form: str, tmp_path: Path) -> None:
    _export(run, tmp_path / "out", "--format", form)
    saved = _read(run)
    acting = build_acting(saved.agent.policy, batch=1)
    acting.load_tensors(saved.tensors)
    observation = _observation(saved, 6)
    expected = acting.greedy(observation)
    found: Mapping[str, Any]
    if form == "onnx":
        onnxruntime = pytest.importorskip("onnxruntime")
        session = onnxruntime.InferenceSession(str(tmp_path / "out" / "policy.onnx"))
        names = [output.name for output in session.get_outputs()]
        found = dict(zip(names, session.run(None, observation), strict=True))
    else:
        import torch

        program = torch.export.load(tmp_path / "out" / "policy.pt2").module()
        found = program({name: torch.from_numpy(column) for name, column in observation.items()})
    for leaf in saved.agent.actions:
        np.testing.assert_allclose(np.asarray(found[leaf.name]), expected[leaf.name], atol=1e-5)


def test_the_metadata_says_where_it_comes_from(run: Path, tmp_path: Path) -> None:
    about = _export(run, tmp_path / "out", "--format", "safetensors", "--batch", "4")
    assert (about["experiment"], about["weights_version"], about["env_steps"]) == ("toy-00abcd", 7, 1_200)
    assert about["environment"]["id"].startswith(TOY)
    assert about["inputs"][0]["shape"][0] == 4
    assert about["layout_hash"] == build_acting(_read(run).agent.policy, batch=1).layout.hash


def test_settings_of_acting_are_no_tensors(run: Path) -> None:
    saved = _read(run)
    assert saved.scalars.keys() == ({"epsilon"} if saved.spec.algorithm == "dqn" else set())
    assert not [name for name in saved.tensors if name.startswith("scalar.")]


def test_a_sampled_policy_has_noise_among_its_inputs(run: Path, tmp_path: Path) -> None:
    about = _export(run, tmp_path / "out", "--stochastic", "--json")
    assert about["api"] == "act"
    assert [item["name"] for item in about["inputs"] if item["role"] == "noise"]


def test_a_run_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="there is no run or checkpoint nothing, also not in"):
        read_saved_policy("nothing", runs_dir=tmp_path, environment={})


def test_a_folder_that_cannot_be_made_is_an_error(run: Path) -> None:
    (run / "file").write_text("")
    done = CliRunner().invoke(app, ["export", str(run), "--to", str(run / "file" / "out")])
    assert isinstance(done.exception, ConfigError)
    with pytest.raises(ConfigError, match="cannot make the folder .*; choose another one with --to"):
        raise done.exception
