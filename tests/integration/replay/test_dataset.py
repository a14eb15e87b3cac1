"""A PyTorch DataLoader over a table, in this process and in workers of its own."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from torch.utils.data import DataLoader

from rollstream.clock import SystemClock
from rollstream.errors import DeadlineExceeded
from rollstream.replay import NStep, Sample, SampleDataset, TableClient, TableWriter
from rollstream.store import Address, Store, parse_address


class Opened:
    """A client with connections of its own."""

    def __init__(self, url: str, table_id: str) -> None:
        address, clock = parse_address(url), SystemClock()
        self._store = Store(address, clock=clock, name="dataset")
        self._client = TableClient(self._store, address, table_id=table_id, clock=clock)

    def sample(self, *, batch_items: int, deadline_s: float) -> Sample:
        return self._client.sample(batch_items=batch_items, deadline_s=deadline_s)

    def close(self) -> None:
        self._client.close()
        self._store.close()


@pytest.fixture
def open_client(address: Address, table_id: str) -> Callable[[], Opened]:
    """Opens a client in the process that calls it."""
    return functools.partial(Opened, str(address), table_id)


@pytest.fixture
def table(replay_service: Any, client: TableClient, spec: Callable[..., Any]) -> TableClient:
    """A client of a table that is empty."""
    client.create(spec())
    return client


@pytest.fixture
def filled(table: TableClient, store: Store, address: Address, episodic: Any) -> TableClient:
    """A client of a table with items of up to two steps; the first feature of an observation counts rows."""
    writer = TableWriter(
        store, address, table_id=table.table_id, spec=table.spec(), rule=NStep(2), environments=2, clock=SystemClock()
    )
    writer.append(episodic(2, episode_steps=5).rollout(40))
    writer.close()
    return table


@pytest.mark.parametrize("workers", [0, 1])
def test_batches_are_tensors_of_what_was_written(filled: TableClient, open_client: Callable[[], Opened], workers: int) -> None:
    dataset = SampleDataset(open_client, batch_items=16, batches=3, deadline_s=20.0)
    batches = list(DataLoader(dataset, batch_size=None, num_workers=workers))
    assert len(batches) == 3
    for batch in batches:
        assert batch["observation"].shape == (16, 3, 3)
        lengths, mask = batch["item.lengths"].numpy(), batch["item.mask"].numpy()
        assert (mask.sum(axis=1) == lengths).all()
        steps = np.diff(batch["observation"].numpy()[..., 0], axis=1)
        assert (steps[mask[:, 1:]] == 1.0).all(), "rows follow one another"


@pytest.mark.parametrize("workers", [0, 1])
def test_a_table_without_items_is_an_error_and_no_end(
    table: TableClient, open_client: Callable[[], Opened], workers: int
) -> None:
    dataset = SampleDataset(open_client, batch_items=4, deadline_s=0.3)
    with pytest.raises(DeadlineExceeded, match=table.table_id):
        list(DataLoader(dataset, batch_size=None, num_workers=workers))
