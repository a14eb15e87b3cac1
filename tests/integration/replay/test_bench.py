"""`rollstream bench replay`: a suite on a small scale, and what it refuses."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from rollstream.clock import FakeClock, SystemClock
from rollstream.errors import ConfigError, DeadlineExceeded, RollstreamError
from rollstream_replay.bench import main
from rollstream_replay.bench.life import wait_until_ended
from rollstream_replay.bench.limit import practical_limit
from rollstream_replay.bench.line_process import LineProcess
from rollstream_replay.bench.reverb import check_reverb

SHORT = ("--seconds", "0.2", "--repeats", "1", "--payload-bytes", "400", "--data", "random")


def run(tmp_path: Path, *options: str) -> dict[str, object]:
    out = tmp_path / "out.json"
    assert main([*options, "--json", str(out)]) == 0
    document: dict[str, object] = json.loads(out.read_text())
    return document


def children() -> set[int]:
    import psutil

    return {process.pid for process in psutil.Process().children(recursive=True)}


# --- a suite ---------------------------------------------------------------------------------------------------------------


def test_a_suite_measures_each_operation_with_several_clients(tmp_path: Path) -> None:
    before = children()
    document = run(tmp_path, *SHORT, "--only", "insert,sample,update", "--clients", "2", "--selector", "prioritized")
    cells = document["cells"]
    assert isinstance(cells, list)
    assert [cell["operation"] for cell in cells] == ["insert", "sample", "sample_strict", "update"]
    for cell in cells:
        assert cell["clients"] == 2
        assert cell["payload_bytes"] == 400
        (figure,) = cell["rollstream"].values()
        assert figure["items_per_s"] > 0.0
        assert figure["batch_p50_ms"] <= figure["batch_p99_ms"] <= figure["batch_max_ms"]
        assert figure["client_cpu_us_per_item"] > 0.0
        assert figure["mb_per_s"] == pytest.approx(figure["items_per_s"] * 400 / 1e6, abs=0.01)
    assert set(cells[0]["tried"]["rollstream"]) == {f"writer, flush {items}" for items in (40, 256, 1000, 4000)}
    assert children() <= before


def small(tmp_path: Path, part: str) -> Any:
    return run(tmp_path, *SHORT, "--only", part, "--items", "5000", "--chunk-rows", "3")[part]


def test_memory_is_that_of_redis_and_of_the_shard_by_item(tmp_path: Path) -> None:
    one, five = small(tmp_path, "memory")
    (ours,) = one["rollstream"]
    assert (one["items"], one["columns"], ours["chunk_rows"]) == (5000, 1, 3)
    assert ours["redis_bytes_per_item"] > 400
    assert ours["bytes_per_item"] == pytest.approx(ours["redis_bytes_per_item"] + ours["shard_bytes_per_item"], abs=0.2)
    assert (five["items"], five["columns"]) == (1250, 5)


def test_recovery_is_measured_after_a_stop_and_after_a_kill(tmp_path: Path) -> None:
    recovery = small(tmp_path, "recovery")
    assert recovery["items_after"] == recovery["items"] == 5000
    assert recovery["restart_s"] > 0.0
    assert recovery["kill_s"] > 0.0


def test_a_checkpoint_is_measured_with_inserts_going_on(tmp_path: Path) -> None:
    checkpoint = small(tmp_path, "checkpoint")["rollstream"]
    assert checkpoint["file_bytes"] > 1000 * 400
    assert checkpoint["inserts_meanwhile"] > 0
    assert checkpoint["insert_max_ms"] > 0.0
    assert checkpoint["save_with_inserts_s"] > 0.0


def test_reconnection_is_measured_after_a_restart_of_redis(tmp_path: Path) -> None:
    reconnect = small(tmp_path, "reconnect")["rollstream"]
    assert 0.0 < reconnect["reconnect_s"] <= reconnect["sampled_after_s"]


def test_the_index_alone_is_measured_by_size_and_selector(tmp_path: Path) -> None:
    document = run(tmp_path, *SHORT, "--only", "index", "--items", "2000", "--plot", str(tmp_path / "cost.png"))
    index = document["index"]
    assert isinstance(index, list)
    assert [(figures["selector"], figures["items"]) for figures in index] == [("uniform", 2000), ("prioritized", 2000)]
    assert all(figures[name] > 0 for figures in index for name in ("inserts_per_s", "samples_per_s", "updates_per_s"))
    assert all(figures["samples_per_cpu_s"] > 0 for figures in index)
    assert (tmp_path / "cost.png").read_bytes().startswith(b"\x89PNG")


def test_targets_are_judged_by_what_was_measured_and_written_as_tables(tmp_path: Path) -> None:
    tables = tmp_path / "tables.md"
    document = run(tmp_path, *SHORT, "--only", "index", "--items", "2000", "--markdown", str(tables))
    targets = document["targets"]
    assert isinstance(targets, list)
    judged = {target["target"]: target for target in targets if target["met"] is not None}
    assert set(judged) == {"index alone, samples per second", "index alone, inserts per second"}
    for target in judged.values():
        assert target["met"] == (target["measured"] >= target["at_least"])
    text = tables.read_text()
    assert "### Index alone" in text
    assert "### Targets" in text
    assert "### Inserts" not in text


# --- the limit -------------------------------------------------------------------------------------------------------------


def test_without_a_benchmark_program_a_raw_loop_gives_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    limit = practical_limit(400, seconds=0.1, folder=tmp_path / "server", clock=SystemClock(), durability="none")
    assert limit["program"] == "raw loop"
    assert limit["set_per_s"] > 0
    assert limit["get_per_s"] > 0


def test_a_benchmark_program_that_fails_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "valkey-benchmark"
    program.write_text("#!/bin/sh\necho no luck; exit 3\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(RollstreamError, match="valkey-benchmark gave no rate for SET: no luck"):
        practical_limit(400, seconds=0.1, folder=tmp_path / "server", clock=SystemClock(), durability="none")


# --- the peer --------------------------------------------------------------------------------------------------------------


def test_a_python_without_dm_reverb_is_refused_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot import dm-reverb; run .* -m pip install"):
        check_reverb(Path(sys.executable), folder=tmp_path, clock=SystemClock())


def test_a_peer_that_is_no_program_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is no program that can be run"):
        check_reverb(tmp_path / "python", folder=tmp_path, clock=SystemClock())


# --- processes that answer in lines ----------------------------------------------------------------------------------------


def process(tmp_path: Path, program: str) -> LineProcess:
    return LineProcess([sys.executable, "-c", program], name="a client", log=tmp_path / "log", clock=SystemClock())


def test_a_client_that_dies_is_told_with_its_last_words(tmp_path: Path) -> None:
    client = process(tmp_path, "import sys; print('out of luck', file=sys.stderr); sys.exit(7)")
    with pytest.raises(RollstreamError, match="(?s)a client ended with status 7; it said:.*out of luck"):
        client.receive(deadline_s=20.0)
    with pytest.raises(RollstreamError, match="ended with status 7"):
        client.send(do="insert")
    client.close()


def test_a_client_that_cannot_do_it_says_why(tmp_path: Path) -> None:
    client = process(tmp_path, 'input(); print(\'{"error": "no such table"}\')')
    with pytest.raises(RollstreamError, match="a client could not do it: no such table"):
        client.ask(do="sample", deadline_s=20.0)
    client.close()


def test_a_client_that_does_not_answer_is_not_waited_for(tmp_path: Path) -> None:
    client = process(tmp_path, "input(); input()")
    with pytest.raises(DeadlineExceeded, match="a client did not answer within 0 s"):
        client.ask(do="sample", deadline_s=0.1)
    client.kill()


def test_a_server_that_does_not_end_is_an_error() -> None:
    with pytest.raises(DeadlineExceeded, match="the server did not end within 600 s of SIGTERM"):
        wait_until_ended(lambda: False, FakeClock())


# --- options ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--only", "insert,nothing"), "--only nothing: there is no such part; choose from insert, sample"),
        (("--against", "reverb"), "--against reverb and --reverb-python PATH go together"),
        (("--reverb-python", "python"), "--against reverb and --reverb-python PATH go together"),
        (("--only", "index", "--items", "0"), "--items must be at least 1, got 0"),
        (("--quick", "--payload-bytes", "3"), "--payload-bytes must be at least 4, got 3"),
        (("--clients", "65"), "--clients must be at most 64, got 65: each client is a process of its own"),
    ],
)
def test_options_that_cannot_work_are_refused(options: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(options) == ConfigError.exit_code
    assert words in capsys.readouterr().err


def test_a_priority_that_this_user_may_not_have_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "setpriority", refuse)
    assert main(["--only", "index", "--nice", "-15"]) == ConfigError.exit_code
    assert "--nice -15 is not allowed here" in capsys.readouterr().err
