"""The spec from a file, options and overrides."""

from __future__ import annotations

from pathlib import Path

import pytest

from rollstream.errors import ConfigError
from rollstream_cli.document import SpecOptions, build_spec, parse_value, read_document

PPO = {"algorithm": "ppo", "environment": "CartPole-v1"}


def messages(error: pytest.ExceptionInfo[ConfigError]) -> list[str]:
    return [str(problem) for problem in error.value.problems]


def test_options_make_a_spec() -> None:
    spec = build_spec(SpecOptions(**PPO, actors=3, envs_per_actor=4, seed=7, stop_return=475.0, stop_steps=20_000))
    assert (spec.algorithm, spec.environment.id, spec.actors, spec.envs_per_actor, spec.seed) == ("ppo", "CartPole-v1", 3, 4, 7)
    assert (spec.stop.mean_return, spec.stop.env_steps) == (475.0, 20_000)


def test_a_run_may_stop_after_so_many_updates() -> None:
    assert build_spec(SpecOptions(**PPO, stop_updates=500)).stop.updates == 500


def test_algorithms_that_learn_from_recorded_data_get_no_actors_unless_asked() -> None:
    options = {"algorithm": "bc", "environment": "CartPole-v1"}
    assert build_spec(SpecOptions(**options)).actors == 0
    assert build_spec(SpecOptions(**options, actors=1)).actors == 1


def test_the_name_says_algorithm_and_environment() -> None:
    assert build_spec(SpecOptions(**PPO)).name == "ppo-cartpole-v1"
    long = SpecOptions(algorithm="ppo", environment="my_company.simulators.warehouse:make_warehouse")
    assert build_spec(long).name == "ppo-my-company-simulators-warehouse-make-w"


def test_overrides_reach_settings_of_the_algorithm_and_fields_of_the_spec() -> None:
    overrides = ("learning_rate=1e-3", "hidden=[32, 32]", "checkpoint.every_s=5", "evaluation_episodes=0", "stop.wall_s=9")
    spec = build_spec(SpecOptions(**PPO, overrides=overrides))
    assert spec.settings == {"learning_rate": 1e-3, "hidden": [32, 32]}
    assert (spec.checkpoint.every_s, spec.evaluation_episodes, spec.stop.wall_s) == (5.0, 0, 9.0)


def test_options_win_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text("algorithm: dqn\nenvironment: {id: Acrobot-v1, max_episode_steps: 9}\nseed: 1\nstop: {env_steps: 5}\n")
    spec = build_spec(SpecOptions(file=file, environment="CartPole-v1", seed=2, stop_return=1.0))
    assert (spec.algorithm, spec.environment.id, spec.environment.max_episode_steps, spec.seed) == ("dqn", "CartPole-v1", 9, 2)
    assert (spec.stop.env_steps, spec.stop.mean_return) == (5, 1.0)


def test_a_base_is_changed_by_options() -> None:
    base = build_spec(SpecOptions(**PPO, seed=3)).model_dump(mode="json")
    spec = build_spec(SpecOptions(stop_steps=10, from_checkpoint="/runs/a"), base=base)
    assert (spec.seed, spec.stop.env_steps, spec.from_checkpoint) == (3, 10, "/runs/a")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("1e-3", 0.001),
        ("-2.5E+4", -25_000.0),
        ("true", True),
        ("null", None),
        ("tanh", "tanh"),
        ("", ""),
        ("[1]", [1]),
    ],
)
def test_values_are_read_as_yaml(text: str, value: object) -> None:
    assert parse_value(text) == value


def test_a_value_that_is_no_yaml_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"cannot read the value '\[1'"):
        parse_value("[1")


def test_every_bad_field_is_listed() -> None:
    with pytest.raises(ConfigError, match="the experiment has 5 bad field") as error:
        build_spec(SpecOptions(**PPO, actors=0, overrides=("learning_rat=1", "hidden", "discount=high", "hidden=[1")))
    listed = messages(error)
    assert "--set learning_rat: unknown setting; did you mean 'learning_rate'?" in listed
    assert "--set hidden: must be key=value" in listed
    assert any(line.startswith("--set hidden: cannot read the value '[1'") for line in listed)
    assert any(line.startswith("actors: ") for line in listed)
    assert any(line.startswith("settings.discount: ") for line in listed)


def test_algorithm_and_environment_are_required() -> None:
    with pytest.raises(ConfigError) as error:
        build_spec(SpecOptions(overrides=("learning_rate=1",)))
    assert messages(error) == [
        "algorithm: is required: `rollstream train ALGO`, or in the file",
        "environment.id: is required: --env ID, or in the file",
    ]


def test_an_unknown_algorithm_is_refused_with_a_suggestion() -> None:
    with pytest.raises(ConfigError, match="unknown algorithm 'pppo'; did you mean 'ppo'") as error:
        build_spec(SpecOptions(algorithm="pppo", environment="CartPole-v1", overrides=("anything=1",)))
    assert len(error.value.problems) == 1


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read .*none.yaml: No such file"):
        read_document(tmp_path / "none.yaml")


def test_a_file_that_is_no_yaml_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("a: [1")
    with pytest.raises(ConfigError, match=r"bad.yaml is not YAML"):
        read_document(tmp_path / "bad.yaml")


def test_a_file_that_is_no_mapping_is_refused(tmp_path: Path) -> None:
    (tmp_path / "list.yaml").write_text("- 1")
    with pytest.raises(ConfigError, match="must be a mapping of names to values, got list"):
        read_document(tmp_path / "list.yaml")
