"""A person interrupts a `LocalReplay` at an unlucky moment, and goes on with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rollstream.clock import SystemClock
from rollstream.replay import TableClient, TableSpec
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
