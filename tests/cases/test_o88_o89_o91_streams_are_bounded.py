"""O88, O89, O91: trimmed entries came back as others or stayed pending for ever, and acknowledged ones were never deleted."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from rollstream.edges import EdgeReader, EdgeWriter
from rollstream.spaces import Batch
from rollstream.store import Store

STREAM = "rs:exp:x-1:edge:rollouts"


def batch(value: float = 1.0) -> Batch:
    return Batch(columns={"reward": np.full(100, value)}, env_steps=100, version=1, newest_version=1)


def edge(store: Store, *, consumer: str = "learner-0") -> EdgeReader:
    return EdgeReader(store, experiment="x-1", name="rollouts", consumer=consumer)


def test_memory_is_flat_however_many_messages_were_acknowledged(store: Store) -> None:
    source = edge(store)
    writer = EdgeWriter(store, experiment="x-1", name="rollouts", in_flight=4, actor="actor-1")
    sizes = []
    for _ in range(3):
        for _ in range(200):
            writer.send(batch(), deadline_s=5.0)
            message = source.next(timeout_s=5.0)
            assert message is not None
            source.ack([message])
        sizes.append(store.client.memory_usage(STREAM))
        assert store.client.xlen(STREAM) == 0
    assert max(sizes) <= 2 * min(sizes)
    assert len(store.client.keys("rs:exp:x-1:*")) == 3  # stream, credit, wake-up


def test_a_stream_that_nobody_reads_is_bounded_by_the_credit_of_its_writers(store: Store) -> None:
    for number in range(3):
        writer = EdgeWriter(store, experiment="x-1", name="rollouts", in_flight=2, actor=f"actor-{number}")
        while writer.wait_for_room(timeout_s=0.01):
            writer.send(batch(), deadline_s=5.0)
    assert store.client.xlen(STREAM) == 6


def test_pending_ids_of_trimmed_messages_are_dropped_and_never_come_back_as_others(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    writer = EdgeWriter(store, experiment="x-1", name="rollouts", in_flight=100, actor="actor-1")
    for value in range(50):
        writer.send(batch(value), deadline_s=5.0)
    dead = edge(store)
    for _ in range(20):
        assert dead.next(timeout_s=5.0) is not None
    store.client.xtrim(STREAM, maxlen=35, approximate=False)  # the first 15 are pending, and gone
    heir = edge(store, consumer="learner-1")
    got = []
    with caplog.at_level(logging.WARNING):
        while (message := heir.next(timeout_s=0.0)) is not None:
            got.append(message.batch.columns["reward"][0])
            heir.ack([message])
    assert got == [float(value) for value in range(15, 50)]
    assert "pending messages no longer exist and were dropped" in caplog.text
    assert store.client.xpending(STREAM, "learner")["pending"] == 0
