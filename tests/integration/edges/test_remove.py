"""An ended experiment leaves no messages behind."""

from __future__ import annotations

from rollstream.edges import EdgeReader, EdgeWriter, remove_edge
from rollstream.spaces import Batch
from rollstream.store import Store


def test_a_removed_edge_leaves_nothing_but_lists_that_expire(store: Store) -> None:
    writer = EdgeWriter(store, experiment="x-1", name="gather", in_flight=4, actor="actor-0")
    reader = EdgeReader(store, experiment="x-1", name="gather", consumer="learner-0")
    for _ in range(2):
        writer.send(Batch(columns={}, env_steps=4, version=1, newest_version=1), deadline_s=5.0)
    message = reader.next(timeout_s=5.0)
    assert message is not None
    reader.ack([message])
    store.client.xadd("rs:exp:x-1:edge:gather:dead", {"m": b"?"})
    remove_edge(store, experiment="x-1", name="gather")
    left = [key for key in store.client.keys("rs:exp:x-1:edge:*") if store.client.ttl(key) < 0]  # type: ignore[union-attr, operator]
    assert left == []
