"""`rollstream replay` on a cell with two replay shards."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

RATIO = ("limiter=sample_to_insert_ratio", "limiter.samples_per_insert=2", "limiter.min_items=4", "limiter.tolerance_items=8")


@pytest.fixture(scope="module")
def cell(make_shell: Callable[[], AbstractContextManager[Any]]) -> Iterator[Any]:
    with make_shell() as shell:
        shell.json("up", "--replay-shards", "2", "--actors", "1", "--json")
        save(shell.directory / "walk.npz", episodes=20, steps=10)
        yield shell
        assert shell.json("down", "--json")["stopped"]


def save(path: Path, *, episodes: int, steps: int) -> None:
    """Episodes that terminate; the observation counts transitions."""
    count = episodes * steps
    number = np.arange(count, dtype=np.float32)
    np.savez(
        path,
        observations=np.stack([number, -number], axis=1),
        actions=np.arange(count) % 3,
        rewards=number,
        terminals=np.arange(count) % steps == steps - 1,
    )


@pytest.fixture
def table(cell: Any, request: pytest.FixtureRequest) -> str:
    """A new table on both shards, filled with 200 transitions."""
    name = request.node.name.split("[")[0].removeprefix("test_").replace("_", "-")[:30].strip("-")
    loaded = cell.json("replay", "load", "walk.npz", "--table", name, "--create", "--shards", "2", "--json")
    assert (loaded["items"], loaded["rows"], loaded["episodes"]) == (200, 220, 20)
    assert loaded["items_per_s"] > 0.0
    return str(loaded["id"])


def shown(cell: Any, table: str) -> Any:
    return cell.json("replay", "show", table, "--json")


def test_tables_are_listed_and_shown_over_all_shards(cell: Any, table: str) -> None:
    listed = {each["id"]: each for each in cell.json("replay", "list", "--json")["tables"]}
    assert listed[table]["items"] == 200
    assert listed[table]["shards"] == 2
    assert table in cell.run("replay", "list").stdout
    told = shown(cell, table)
    assert [part["info"]["items"] for part in told["parts"]] == [100, 100]
    assert [part["info"]["can_sample_one"] for part in told["limiter"]] == [True, True]
    text = cell.run("replay", "show", table).stdout
    assert "columns: observation <f4[2], action <i8[], reward <f4[]" in text
    assert "shard 1 (replay-1): 100 items" in text


def test_items_are_looked_at_with_their_rows(cell: Any, table: str) -> None:
    found = cell.json("replay", "items", table, "--order", "newest", "--limit", "2", "--json")["items"]
    assert len(found) == 4, "two of each shard"
    entry = cell.json("replay", "item", table, str(found[0]["key"]), "--json")
    assert entry["key"] == found[0]["key"]
    first, second = entry["rows"]
    assert second["flags"] == 10, "the final observation of a terminated episode"
    assert first["observation"] == [first["reward"], -first["reward"]]
    assert f"key: {entry['key']}" in cell.run("replay", "item", table, str(entry["key"])).stdout
    gone = cell.run("replay", "item", table, "12345")
    assert gone.returncode == 1
    assert "has no item with the key 12345" in gone.stderr


def test_a_histogram_has_bars_of_each_shard(cell: Any, table: str) -> None:
    told = cell.json("replay", "histogram", table, "--bins", "4", "--json")["shards"]
    assert [sum(part["info"]["counts"]) for part in told] == [100, 100]
    assert "█" in cell.run("replay", "histogram", table).stdout


def test_a_limiter_is_changed_live_and_a_bad_one_refused(cell: Any, table: str) -> None:
    changed = cell.json("replay", "set", table, *RATIO, "max_items=1000", "--json")
    assert changed["max_items"] == 1000
    for part in shown(cell, table)["limiter"]:
        assert (part["info"]["samples_per_insert"], part["info"]["max_diff"]) == (2.0, 16.0)
    refused = cell.run("replay", "set", table, "limiter.samples_per_insert=-1")
    assert refused.returncode == 2
    assert "samples_per_insert must be > 0, got -1" in refused.stderr
    assert "a table has no setting 'limit'" in cell.run("replay", "set", table, "limit=3").stderr


def test_items_are_deleted_by_key_and_all_at_once(cell: Any, table: str) -> None:
    keys = [str(entry["key"]) for entry in cell.json("replay", "items", table, "--limit", "3", "--json")["items"]]
    told = cell.json("replay", "delete", table, *keys, "12345", "--json")
    assert (told["deleted"], told["unknown"]) == (6, 1)
    assert shown(cell, table)["items"] == 194
    assert "empty" in cell.run("replay", "reset", table).stdout
    assert shown(cell, table)["items"] == 0


def test_a_wrong_name_lists_what_there_is(cell: Any, table: str) -> None:
    done = cell.run("replay", "show", "nope")
    assert done.returncode == 1
    assert "there is no table 'nope'; there are: " in done.stderr
    assert table in done.stderr
    assert "--create makes one of the data" in cell.run("replay", "load", "walk.npz", "--table", "nope").stderr


def test_one_look_at_all_tables(cell: Any, table: str) -> None:
    told = cell.json("replay", "top", table, "--every", "0.2", "--json")
    assert told["tables"][0]["items"] == 200
    assert told["over_s"] >= 0.2
    assert table in cell.run("replay", "top", "--once", "--every", "0.2").stdout


@pytest.mark.parametrize("end", ["q", "interrupt"])
def test_watching_ends_by_a_key_or_by_ctrl_c(cell: Any, end: str) -> None:
    ours, theirs = pty.openpty()
    watching = subprocess.Popen(
        [sys.executable, "-m", "rollstream_cli", "replay", "top", "--every", "0.2"],
        cwd=cell.directory,
        stdin=theirs,
        stdout=theirs,
        stderr=subprocess.PIPE,
        env={**os.environ, "TERM": "xterm"},
    )
    os.close(theirs)
    seen = b""
    while b"ends" not in seen:
        seen += os.read(ours, 4096)
    if end == "q":
        os.write(ours, b"q")
    else:
        watching.send_signal(signal.SIGINT)
    assert watching.wait(timeout=20) == 0
    assert watching.stderr is not None
    assert b"Traceback" not in watching.stderr.read()
    os.close(ours)


def test_a_table_is_dumped_as_an_archive_and_loaded_again(cell: Any, table: str) -> None:
    told = cell.json("replay", "dump", table, "out.npz", "--json")
    assert told["items"] == 200
    with np.load(cell.directory / "out.npz") as archive:
        assert len(archive["reward"]) == 220
        assert np.array_equal(np.sort(archive["reward"][archive["item_first_row"]]), np.arange(200))
    again = cell.json("replay", "load", "out.npz", "--table", f"{table}-again", "--create", "--items", "n_step:3", "--json")
    assert again["items"] == 200
    first = cell.json("replay", "items", f"{table}-again", "--order", "oldest", "--limit", "1", "--json")["items"][0]
    assert len(first["rows"]) == 4


def test_a_snapshot_restores_keys_and_priorities(cell: Any, table: str) -> None:
    before = {entry["key"] for entry in cell.json("replay", "items", table, "--limit", "1000", "--json")["items"]}
    assert cell.json("replay", "dump", table, "walk.snapshot", "--json")["items"] == 200
    cell.run("replay", "reset", table)
    assert cell.json("replay", "load", "walk.snapshot", "--table", table, "--json")["items"] == 200
    after = cell.json("replay", "items", table, "--limit", "1000", "--json")["items"]
    assert {entry["key"] for entry in after} == before
    assert all(entry["rows"] is not None for entry in after)
    restored = cell.json("replay", "load", "walk.snapshot", "--table", f"{table}-2", "--create", "--max-items", "50", "--json")
    assert restored["items"] == 50
    assert shown(cell, f"{table}-2")["max_items"] == 50
    again = cell.run("replay", "load", "walk.snapshot", "--table", f"{table}-2", "--create")
    assert again.returncode == 2
    assert "exists already; load into it without --create" in again.stderr


def test_a_minari_dataset_is_loaded_by_its_id(cell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    minari: Any = pytest.importorskip("minari", reason="needs the extra minari")
    buffers: Any = pytest.importorskip("minari.data_collector.episode_buffer")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(cell.directory))
    ends = np.array([False, False, False, True])
    episodes = [
        buffers.EpisodeBuffer(
            id=number,
            observations=np.arange(5, dtype=np.float64)[:, None] + 10 * number,
            actions=np.arange(4) % 2,
            rewards=list(np.ones(4)),
            terminations=list(ends),
            truncations=list(~ends & False),
            infos={},
        )
        for number in range(3)
    ]
    minari.create_dataset_from_buffers(
        "toy/walk-v0",
        buffer=episodes,
        observation_space=gymnasium.spaces.Box(-np.inf, np.inf, (1,), np.float64),
        action_space=gymnasium.spaces.Discrete(2),
        algorithm_name="none",
        author="nobody",
        author_email="nobody@example.org",
        code_permalink="none",
        description="A walk.",
    )
    load = ("replay", "load", "toy/walk-v0", "--table", "minari", "--create", "--float32", "--items", "episode:10", "--json")
    done = cell.run(*load, MINARI_DATASETS_PATH=str(cell.directory))
    assert done.returncode == 0, done.stderr
    assert (json.loads(done.stdout)["items"], json.loads(done.stdout)["rows"]) == (3, 15)
    first = cell.json("replay", "items", "offline.minari", "--order", "oldest", "--limit", "1", "--json")["items"][0]
    assert [row["observation"][0] for row in first["rows"]] == [0, 1, 2, 3, 4]


def test_data_that_do_not_fit_the_table_are_refused_by_name(cell: Any, table: str) -> None:
    np.savez(cell.directory / "odd.npz", observation=np.zeros((5, 3), np.float32), action=np.zeros(5, int), reward=np.zeros(5))
    done = cell.run("replay", "load", "odd.npz", "--table", table)
    assert done.returncode == 1
    assert "odd.npz: column 'observation' has rows of shape [3] where [2] is expected" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("missing.npz",), "missing.npz is no NumPy archive that can be read"),
        (("nobody/knows-v0",), "'nobody/knows-v0'"),
        (("walk.npz", "--rename", "rewards"), "--rename takes ARRAY=COLUMN, such as state=observation"),
        (("walk.npz", "--max-items", "5"), "settings of the table go with --create"),
        (("walk.npz", "--create", "--set", "max_item=5"), "a table has no setting 'max_item'"),
        (("nobody", "--drop", "x"), "columns of a Minari dataset keep their names"),
    ],
)
def test_a_source_that_cannot_be_used_is_refused_by_name(cell: Any, arguments: tuple[str, ...], message: str) -> None:
    done = cell.run("replay", "load", *arguments, "--table", "any")
    assert done.returncode == 2
    assert message in done.stderr


def test_a_closed_limiter_ends_the_load_with_who_waits(cell: Any) -> None:
    save(cell.directory / "long.npz", episodes=2_000, steps=20)
    limits = [word for setting in (*RATIO, "unread_entries=1") for word in ("--set", setting)]
    done = cell.run("replay", "load", "long.npz", "--table", "closed", "--create", *limits, "--deadline", "1")
    assert done.returncode == 1
    assert "samplers must sample" in done.stderr
    told = json.loads(cell.run("replay", "show", "offline.closed", "--json").stdout)
    assert "writers wait: writers are ahead of the ratio" in told["waits"][0]


def test_a_name_that_no_table_can_have_is_refused(cell: Any) -> None:
    done = cell.run("replay", "load", "walk.npz", "--table", "Walk!", "--create")
    assert done.returncode == 2
    assert "name: String should match pattern" in done.stderr
