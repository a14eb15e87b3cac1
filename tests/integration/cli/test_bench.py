"""`rollstream bench train` and `bench replay` print what comparisons need."""

from __future__ import annotations

import json
import signal
from typing import Any

import pytest

from rollstream.errors import ConfigError
from rollstream_cli.reference.results import REPLAY_BENCH_KEYS
from rollstream_learner.bench.flow_scaling import measure_scaling


def test_a_measurement_has_rates_costs_and_the_time_to_the_first_update(shell: Any) -> None:
    measured = shell.json("bench", "train", "--algo", "ppo", "--seconds", "3", "--warm-up", "0", "--json", "-")
    assert measured["env_steps_per_s"] > 0.0
    assert measured["env_steps_trained_per_s"] > 0.0
    assert measured["updates_per_s"] > 0.0
    assert measured["start_to_first_update_s"] > 0.0
    assert measured["cores_used"] > 0.0
    assert measured["rss_total_mb"] >= measured["rss_mb"]["learner-0"]
    assert measured["window_s"] > 0.0
    assert shell.runs == []


def test_one_payload_alone_is_measured_in_the_simple_form(shell: Any) -> None:
    options = ("--seconds", "0.3", "--table-items", "5000", "--sampler", "uniform")
    measured = shell.json("bench", "replay", "--payload-bytes", "400", *options, "--json", "-")
    assert set(measured) == {key.name for key in REPLAY_BENCH_KEYS}
    assert measured["payload_bytes"] == 400
    assert measured["sampler"] == "uniform"
    assert measured["insert_items_per_s"] > 0
    assert measured["sample_items_per_s"] > 0
    assert measured["sample_batch_p50_ms"] <= measured["sample_batch_p99_ms"]


def test_options_of_a_suite_reach_it(shell: Any) -> None:
    options = ("--only", "index,insert", "--items", "1000", "--seconds", "0.1", "--repeats", "2", "--selector", "uniform")
    done = shell.run(
        *("bench", "replay", *options, "--payload-bytes", "400", "--payload-bytes", "4000", "--data", "compressible"),
        *("--clients", "1", "--durability", "none", "--markdown", "tables.md", "--json", "folder/out.json"),
    )
    assert done.returncode == 0, done.stderr
    document = json.loads((shell.directory / "folder" / "out.json").read_text())
    assert [(cell["payload_bytes"], cell["data"], cell["clients"]) for cell in document["cells"]] == [
        (400, "compressible", 1),
        (4000, "compressible", 1),
    ]
    assert all(len(cell["rollstream"]["writer"]["runs_items_per_s"]) == 2 for cell in document["cells"])
    assert [figures["selector"] for figures in document["index"]] == ["uniform"]
    assert document["plan"]["durability"] == "none"
    assert "### Inserts" in (shell.directory / "tables.md").read_text()
    assert "bench: insert, 400 B compressible" in done.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--only", "everything"), "there is no such part"),
        (("--against", "reverb"), "--against reverb and --reverb-python PATH go together"),
        (("--against", "reverb", "--reverb-python", "nowhere/python"), "is no program that can be run"),
    ],
)
def test_a_suite_that_cannot_work_is_refused_before_anything_starts(shell: Any, options: tuple[str, ...], words: str) -> None:
    done = shell.run("bench", "replay", *options, "--json", "out.json")
    assert done.returncode == 2
    assert words in done.stderr
    assert not (shell.directory / "out.json").exists()


def test_an_interrupted_suite_leaves_no_process_behind(shell: Any) -> None:
    process = shell.start("bench", "replay", "--only", "insert", "--payload-bytes", "400", "--clients", "1", "--seconds", "0.2")
    shell.until_said(process, "bench: insert")
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    shell.until(lambda: not shell.processes())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("train", "--against", "reverb"), "--against rllib and --rllib-python PATH go together, got --against reverb"),
        (("train", "--against", "rllib", "--rllib-python", "python", "--only", "sac"), "there is no such part"),
        (("flow", "--only", "everything"), "there is no such part"),
        (("flow", "--only", "scaling", "--actors", "many"), "--actors takes whole numbers above 0"),
    ],
)
def test_comparisons_that_cannot_work_are_refused(shell: Any, options: tuple[str, ...], words: str) -> None:
    done = shell.run("bench", *options, "--json", "out.json")
    assert done.returncode == 2
    assert words in done.stderr
    assert not (shell.directory / "out.json").exists()


def test_more_actors_are_compared_with_one() -> None:
    told: list[str] = []
    found = measure_scaling(seconds=2.0, actors=(1,), repeats=1, say=told.append)
    assert found["actors"]["1"]["share_of_linear"] == 1.0
    assert found["actors"]["1"]["env_steps_per_s"] > 0.0
    assert told[0].startswith("1 actors: ")
    with pytest.raises(ConfigError, match="0 actors could not be measured: "):
        measure_scaling(seconds=2.0, actors=(0,), repeats=1, say=told.append)
