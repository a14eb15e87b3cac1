"""`rollstream replay top`: all tables of a cell, live in the terminal. `q` or Ctrl-C ends it."""

from __future__ import annotations

import contextlib
import os
import select
import sys
import termios
import tty
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from rollstream.clock import Clock
from rollstream.errors import RollstreamError
from rollstream_cli.replay.render import frame
from rollstream_cli.replay.tables import CellTables
from rollstream_cli.replay.totals import TableTotals, rates, totals

__all__ = ["Keys", "Top", "keys_of_terminal"]

Keys = Callable[[float], str]
"""Waits up to so many seconds for a key and gives it; empty when none came."""


class Top:
    """Looks at all tables every now and then, and remembers the look before.

    Args:
        names: ids of the tables wanted; none: all there are.
    """

    def __init__(self, tables: CellTables, *, names: Sequence[str], clock: Clock) -> None:
        self._tables = tables
        self._names = tuple(names)
        self._clock = clock
        self._before: dict[str, TableTotals] = {}
        self._now: list[TableTotals] = []
        self._looked_s: float | None = None
        self._over_s = 0.0

    def look(self) -> None:
        """Ask the shards."""
        ids = self._names or self._tables.table_ids()
        self._before = {table.table_id: table for table in self._now}
        self._now = [totals(table_id, self._tables.look(table_id)) for table_id in ids]
        now_s = self._clock.monotonic_s()
        self._over_s = 0.0 if self._looked_s is None else now_s - self._looked_s
        self._looked_s = now_s

    def shown(self) -> Any:
        """The frame."""
        return frame(self._now, self._before, over_s=self._over_s)

    def to_json(self) -> dict[str, Any]:
        """The frame for programs."""
        listed = []
        for table in self._now:
            inserted_per_s, sampled_per_s = rates(table, self._before.get(table.table_id), over_s=self._over_s)
            listed.append({**table.to_json(), "inserted_per_s": inserted_per_s, "sampled_per_s": sampled_per_s})
        return {"tables": listed, "over_s": self._over_s}

    def run(self, console: Console, *, every_s: float, keys: Keys) -> None:
        """Show frames until `q`. A cell that is away for a while is shown as that."""
        with Live(console=console, screen=console.is_terminal, auto_refresh=False) as live:
            while True:
                try:
                    self.look()
                    shown = self.shown()
                except RollstreamError as error:
                    shown = Group(self.shown(), Text(str(error)))
                live.update(Group(shown, Text("q ends", style="dim")), refresh=True)
                if keys(every_s) in ("q", "Q", "\x03", "\x1b"):
                    return


@contextlib.contextmanager
def keys_of_terminal(clock: Clock) -> Iterator[Keys]:
    """Single keys of the terminal, without Enter; where standard input is none, it only waits."""
    if not sys.stdin.isatty():

        def wait(timeout_s: float) -> str:
            clock.sleep(timeout_s)
            return ""

        yield wait
        return
    handle = sys.stdin.fileno()
    before = termios.tcgetattr(handle)
    try:
        tty.setcbreak(handle)

        def read(timeout_s: float) -> str:
            ready, _, _ = select.select([handle], [], [], timeout_s)
            return os.read(handle, 1).decode(errors="replace") if ready else ""

        yield read
    finally:
        termios.tcsetattr(handle, termios.TCSADRAIN, before)
