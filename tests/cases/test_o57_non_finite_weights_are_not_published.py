"""O57: one poisoned weight made actions NaN at a random time. The bad version is never published, and never taken."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from rollstream.errors import NonFiniteError
from rollstream.store import Store, keys
from rollstream.weights import WeightStore, encode_tensors

GOOD = {"policy.weight": np.ones((4, 2), np.float32)}
BAD = {"policy.weight": np.array([[1.0, np.nan]], np.float32)}


def test_the_learner_cannot_publish_a_poisoned_version(store: Store) -> None:
    weights = WeightStore(store, experiment="x-1")
    weights.publish(1, GOOD)
    with pytest.raises(NonFiniteError, match=r"weights version 2 of x-1 refused: tensor policy.weight has 1 of 2 values"):
        weights.publish(2, BAD)
    fetched = weights.fetch()
    assert fetched is not None
    assert fetched.version == 1


def test_an_actor_refuses_poisoned_weights_that_reached_redis_another_way(store: Store) -> None:
    blob = encode_tensors(BAD)
    store.client.set(keys.experiment_weights_version("x-1", 1), blob)
    store.client.hset(keys.experiment_weights("x-1"), mapping={"latest": 1, "sha256:1": hashlib.sha256(blob).hexdigest()})
    with pytest.raises(NonFiniteError, match=r"first at \[0, 1\]: nan"):
        WeightStore(store, experiment="x-1").fetch()
