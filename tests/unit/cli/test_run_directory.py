"""The folder of a run."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from rollstream.config import EnvironmentSpec, ExperimentSpec, StopRule
from rollstream.errors import ConfigError, RollstreamError, StoreRefused, StoreUnavailable
from rollstream_cli.errors import CellError, Interrupted
from rollstream_cli.run_directory import find_run, new_run_id, read_run, removed_if_it_never_began, write_run, write_summary

SPEC = ExperimentSpec(algorithm="ppo", environment=EnvironmentSpec(id="CartPole-v1"), stop=StopRule(env_steps=10))


def write(directory: Path, phase: str = "stopped") -> None:
    write_run(directory, experiment="ppo-abc123", spec=SPEC.model_dump(mode="json"), phase=phase, cell_dir=directory / "cell")


def test_an_id_is_the_name_and_six_hex_digits() -> None:
    name, _, digits = new_run_id("ppo-cartpole-v1").rpartition("-")
    assert name == "ppo-cartpole-v1"
    assert len(bytes.fromhex(digits)) == 3
    assert new_run_id("a") != new_run_id("a")


def test_a_run_is_found_by_folder_and_by_id(tmp_path: Path) -> None:
    write(tmp_path / "ppo-abc123")
    by_id = find_run("ppo-abc123", runs_dir=tmp_path)
    assert by_id is not None
    assert by_id == find_run(str(tmp_path / "ppo-abc123"), runs_dir=tmp_path / "none")
    assert (by_id.experiment, by_id.phase, by_id.cell_dir) == ("ppo-abc123", "stopped", tmp_path / "ppo-abc123" / "cell")
    assert ExperimentSpec.model_validate(dict(by_id.spec)) == SPEC


def test_an_unknown_name_may_be_an_experiment_of_a_cell(tmp_path: Path) -> None:
    assert find_run("nothing", runs_dir=tmp_path) is None


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="holds no run of `rollstream train`"):
        find_run(str(tmp_path), runs_dir=tmp_path)


@pytest.mark.parametrize("text", ["{", "[]", '{"experiment": "a"}'])
def test_a_damaged_file_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(ConfigError, match="is damaged .* start again with `rollstream train`"):
        read_run(tmp_path)


def test_a_run_that_reached_its_rule_needs_a_new_one(tmp_path: Path) -> None:
    write(tmp_path, phase="succeeded")
    run = read_run(tmp_path)
    with pytest.raises(ConfigError, match="has reached its stop rule; say how far"):
        run.check_that_it_can_go_on(SPEC)
    run.check_that_it_can_go_on(SPEC.model_copy(update={"stop": StopRule(env_steps=20)}))


def test_a_run_that_was_stopped_goes_on_with_its_rule(tmp_path: Path) -> None:
    write(tmp_path)
    read_run(tmp_path).check_that_it_can_go_on(SPEC)


def test_a_run_goes_on_from_its_checkpoints_when_it_has_any(tmp_path: Path) -> None:
    write(tmp_path)
    assert read_run(tmp_path).checkpoints() is None
    (tmp_path / "checkpoints" / "00000001").mkdir(parents=True)
    assert read_run(tmp_path).checkpoints() == str(tmp_path / "checkpoints")


def test_files_are_private_and_replaced_in_one_step(tmp_path: Path) -> None:
    path = write_summary(tmp_path / "new", {"mean_return": 1.0})
    write_summary(tmp_path / "new", {"mean_return": 2.0})
    assert json.loads(path.read_text()) == {"mean_return": 2.0}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.name for entry in path.parent.iterdir()] == ["summary.json"]


@pytest.mark.parametrize("error", [ConfigError("bad"), StoreUnavailable("away"), StoreRefused("no"), Interrupted("Ctrl-C")])
def test_what_never_began_leaves_no_folder(tmp_path: Path, error: RollstreamError) -> None:
    with pytest.raises(type(error)), removed_if_it_never_began(tmp_path / "a"):
        write(tmp_path / "a")
        raise error
    assert not (tmp_path / "a").exists()


def test_logs_stay_after_a_failure_and_an_older_folder_stays_always(tmp_path: Path) -> None:
    with pytest.raises(CellError), removed_if_it_never_began(tmp_path / "a"):
        write(tmp_path / "a")
        raise CellError("learner-0 cannot work")
    with pytest.raises(ConfigError), removed_if_it_never_began(tmp_path / "a"):
        raise ConfigError("bad")
    assert (tmp_path / "a").exists()
