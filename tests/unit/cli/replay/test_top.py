"""`rollstream replay top`, with a cell whose numbers the test makes."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

from rich.console import Console

from rollstream.clock import FakeClock
from rollstream_cli.errors import RestError
from rollstream_cli.replay.tables import CellTables, ShardSays
from rollstream_cli.replay.top import Top, keys_of_terminal


class Growing:
    """One table; each look finds 100 more inserted. At its third look the shard is away."""

    def __init__(self) -> None:
        self.looks = 0

    def table_ids(self) -> list[str]:
        if self.looks == 2:
            self.looks += 1
            raise RestError("replay-0 at http://gone did not answer")
        return ["run.replay"]

    def ask(
        self, table_id: str, path: str, *, method: str, query: Mapping[str, Any], content: Any, shard: int | None
    ) -> list[ShardSays]:
        self.looks += 1
        info = {"items": 50, "inserted": 100 * self.looks, "sampled": 0, "spec": {"max_items": 100}}
        return [ShardSays(shard=0, member="replay-0", info=info)]


def test_frames_come_until_q_and_a_cell_that_is_away_is_told(clock: FakeClock) -> None:
    output, pressed = io.StringIO(), iter(["", "", "", "q"])

    def keys(timeout_s: float) -> str:
        clock.advance(timeout_s)
        return next(pressed)

    Top(CellTables(Growing()), names=[], clock=clock).run(Console(file=output, width=120), every_s=2.0, keys=keys)
    assert next(pressed, None) is None, "it looked four times"
    assert "run.replay" in output.getvalue()


def test_a_look_for_programs_has_rates(clock: FakeClock) -> None:
    top = Top(CellTables(Growing()), names=["run.replay"], clock=clock)
    top.look()
    clock.advance(4.0)
    top.look()
    told = top.to_json()
    assert told["over_s"] == 4.0
    assert told["tables"][0]["inserted_per_s"] == 25.0
    assert told["tables"][0]["items"] == 50


def test_without_a_terminal_it_waits_instead_of_reading_keys(clock: FakeClock) -> None:
    with keys_of_terminal(clock) as keys:
        assert keys(3.0) == ""
    assert clock.monotonic_s() == 3.0
