"""O64: stale rollouts of a frozen actor are dropped, by actor. O67: an empty queue is no batch, and shows who is silent."""

from __future__ import annotations

import numpy as np

from rollstream.edges import EdgeReader, EdgeWriter
from rollstream.spaces import Batch
from rollstream.store import Store


def test_a_stale_message_can_be_dropped_by_name_and_its_actor_goes_on(store: Store) -> None:
    source = EdgeReader(store, experiment="x-1", name="rollouts", consumer="learner-0")
    frozen = EdgeWriter(store, experiment="x-1", name="rollouts", in_flight=1, actor="actor-7")
    frozen.send(Batch(columns={"reward": np.ones(8)}, env_steps=8, version=3, newest_version=3), deadline_s=5.0)
    learner_version, max_lag, dropped = 13, 4, dict[str, int]()
    message = source.next(timeout_s=5.0)
    assert message is not None
    if learner_version - message.batch.version > max_lag:
        dropped[message.batch.actor] = message.batch.env_steps
        source.ack([message])
    assert dropped == {"actor-7": 8}
    assert frozen.wait_for_room(timeout_s=5.0)


def test_an_empty_edge_says_so_and_tells_who_is_silent(store: Store) -> None:
    source = EdgeReader(store, experiment="x-1", name="rollouts", consumer="learner-0")
    assert source.next(timeout_s=0.01) is None
    writer = EdgeWriter(store, experiment="x-1", name="rollouts", in_flight=2, actor="actor-7")
    writer.send(Batch(columns={}, env_steps=0, version=1, newest_version=1), deadline_s=5.0)
    message = source.next(timeout_s=5.0)
    assert message is not None  # an empty fragment is a message like any other
    source.ack([message])
    assert source.next(timeout_s=0.01) is None
    assert source.silence_s()["actor-7"] > 0.0
