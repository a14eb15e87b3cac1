"""O59: pushed weights were lost while an actor was busy. Actors pull, take only what is newer, and survive a server restart."""

from __future__ import annotations

import numpy as np

from rollstream.store import EmbeddedServer, Store
from rollstream.weights import WeightStore


def tensors(value: float) -> dict[str, np.ndarray]:
    return {"policy.weight": np.full(4, value, np.float32)}


def test_a_pull_gives_the_newest_and_nothing_when_there_is_nothing_newer(store: Store) -> None:
    learner, actor = WeightStore(store, experiment="x-1"), WeightStore(store, experiment="x-1")
    for version in range(1, 11):  # ten publications while the actor was busy
        learner.publish(version, tensors(version))
    fetched = actor.fetch_if_newer(0)
    assert fetched is not None
    assert fetched.version == 10
    assert actor.fetch_if_newer(10) is None
    assert actor.fetch_if_newer(11) is None


def test_weights_survive_a_restart_of_the_server(store: Store, server: EmbeddedServer) -> None:
    weights = WeightStore(store, experiment="x-1")
    weights.publish(1, tensors(1.0))
    server.restart()
    fetched = weights.fetch_if_newer(0)
    assert fetched is not None
    assert fetched.tensors["policy.weight"].tolist() == [1.0] * 4
