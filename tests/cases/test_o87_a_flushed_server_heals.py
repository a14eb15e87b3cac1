"""O87: after Redis lost its streams, every read answered NOGROUP for ever. The group is made again, the loss is shown."""

from __future__ import annotations

import logging
import threading

import numpy as np
import pytest

from rollstream.edges import EdgeReader, EdgeWriter
from rollstream.metrics import Counters
from rollstream.spaces import Batch
from rollstream.store import Store


def batch(value: float) -> Batch:
    return Batch(columns={"reward": np.full(8, value)}, env_steps=8, version=1, newest_version=1)


def test_an_edge_goes_on_after_flushall(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    counters = Counters()
    source = EdgeReader(store, experiment="x-1", name="rollouts", consumer="learner-0", counters=counters)
    writer = EdgeWriter(store, experiment="x-1", name="rollouts", in_flight=4, actor="actor-1")
    writer.send(batch(1.0), deadline_s=5.0)
    held = source.next(timeout_s=5.0)
    assert held is not None
    writer.send(batch(2.0), deadline_s=5.0)
    store.client.flushall()
    with caplog.at_level(logging.WARNING):
        assert source.next(timeout_s=0.05) is None
    assert "edge rollouts of x-1 vanished from Redis; made again, unread messages are lost" in caplog.text
    assert counters.value("edge_groups_made_again") == 1
    writer.send(batch(3.0), deadline_s=5.0)
    message = source.next(timeout_s=5.0)
    assert message is not None
    assert message.batch.columns["reward"][0] == 3.0
    assert source.missing == 1
    source.ack([held, message])
    writer.drain(deadline_s=5.0)


def test_a_reader_that_waits_while_the_server_is_flushed_heals_too(store: Store) -> None:
    source = EdgeReader(store, experiment="x-1", name="rollouts", consumer="learner-0")
    writer = EdgeWriter(store, experiment="x-1", name="rollouts", in_flight=4, actor="actor-1")
    assert source.next(timeout_s=0.01) is None
    got: list[float] = []

    def wait() -> None:
        message = source.next(timeout_s=30.0)
        got.append(message.batch.columns["reward"][0] if message is not None else -1.0)

    thread = threading.Thread(target=wait)
    thread.start()
    while not any(client["cmd"].startswith("xreadgroup") for client in store.client.client_list()):
        threading.Event().wait(0.005)
    store.client.flushall()
    writer.send(batch(4.0), deadline_s=5.0)
    thread.join(timeout=30.0)
    assert got == [4.0]
