"""A person interrupts a `LocalReplay` at an unlucky moment, and goes on with it."""

from __future__ import annotations

import itertools
import signal
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

from rollstream.clock import SystemClock
from rollstream.replay import EachRow, TableClient, TableSpec
from rollstream.replay.local import LocalReplay
from rollstream.replay.local_requests import LocalLink


@pytest.fixture
def replay(tmp_path: Path) -> Iterator[LocalReplay]:
    with LocalReplay(tmp_path, tables=[TableSpec(name="numbers", max_items=100, rows=[("number", "<i8", ())])]) as made:
        yield made


class InterruptedOnce(LocalLink):
    """Ctrl-C comes just before the first request is sent."""

    interrupts = 1

    def send(self, *request: Any, **options: Any) -> None:
        if self.interrupts:
            self.interrupts = 0
            raise KeyboardInterrupt
        super().send(*request, **options)


def test_a_client_that_was_interrupted_before_it_asked_asks_again(replay: LocalReplay) -> None:
    replay.load("numbers", {"number": np.arange(5)})
    made = TableClient(
        replay._store,
        replay._address,
        table_id="local.numbers",
        clock=SystemClock(),
        make_link=lambda shard: InterruptedOnce(replay._shards, shard=shard),
    )
    with closing(made) as client:
        with pytest.raises(KeyboardInterrupt):
            client.sample(batch_items=4, deadline_s=5.0)
        assert len(client.sample(batch_items=4, deadline_s=5.0)) == 4


class InterruptAt:
    """Ctrl-C comes at the n-th line that is executed in functions of these names, counted from 1."""

    def __init__(self, line: int, functions: set[str]) -> None:
        self.left = line
        self._functions = functions

    def __call__(self, frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_name not in self._functions:
            return None
        if event == "line":
            self.left -= 1
            if self.left == 0:
                signal.raise_signal(signal.SIGINT)
        return self


def test_a_writer_goes_on_whatever_line_of_its_acknowledgement_was_interrupted(tmp_path: Path) -> None:
    made = TableSpec(name="numbers", max_items=100, rows=[("number", "<i8", ())], unread_entries=1)
    rows, offsets = np.zeros(4, made.row_spec.dtype), np.array([0, 4])
    with LocalReplay(tmp_path, tables=[made]) as replay, closing(replay.writer("numbers", EachRow(), environments=1)) as writer:
        writer.append_rows(rows, offsets)
        interrupted = 0
        for line in itertools.count(1):
            interrupt = InterruptAt(line, {"_acknowledge", "progress", "acknowledge", "give_back"})
            sys.settrace(interrupt)
            try:
                writer.append_rows(rows, offsets, deadline_s=5.0)
            except KeyboardInterrupt:
                interrupted += 1
            finally:
                sys.settrace(None)
            if interrupt.left > 0:
                break
            writer.append_rows(rows, offsets, deadline_s=5.0)
    assert interrupted > 5
