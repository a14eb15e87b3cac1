"""Publishing and pulling weights, on a real server."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from rollstream.errors import LeaseLost, SchemaMismatch, StoreRefused
from rollstream.store import Lease, Store, keys
from rollstream.weights import KEPT_VERSIONS, WeightStore, encode_tensors

EXPERIMENT = "cartpole-abc123"


def tensors(value: float = 1.0) -> dict[str, np.ndarray]:
    return {"policy.weight": np.full((4, 2), value, np.float32), "policy.bias": np.zeros(2, np.float32)}


@pytest.fixture
def weights(store: Store) -> WeightStore:
    return WeightStore(store, experiment=EXPERIMENT)


def test_before_the_first_publication_there_are_no_weights(weights: WeightStore) -> None:
    assert weights.latest() == 0
    assert weights.fetch() is None
    assert weights.fetch(1) is None
    assert weights.fetch_if_newer(0) is None


def test_what_was_published_is_fetched(weights: WeightStore) -> None:
    sha256 = weights.publish(1, tensors(0.5))
    fetched = weights.fetch()
    assert fetched is not None
    assert (fetched.version, fetched.sha256) == (1, sha256)
    assert sha256 == hashlib.sha256(encode_tensors(tensors(0.5))).hexdigest()
    for name, tensor in tensors(0.5).items():
        np.testing.assert_array_equal(fetched.tensors[name], tensor)


def test_an_older_version_can_be_fetched_while_it_is_kept(weights: WeightStore) -> None:
    for version in (1, 2, 5):
        weights.publish(version, tensors(version))
    older = weights.fetch(2)
    assert older is not None
    assert older.tensors["policy.weight"][0, 0] == 2.0


def test_the_question_for_the_newest_version_rides_on_another_pipeline(weights: WeightStore, store: Store) -> None:
    assert weights.parse_latest(store.client.execute_command(*weights.latest_command)) == 0
    weights.publish(3, tensors())
    assert weights.parse_latest(store.client.execute_command(*weights.latest_command)) == 3


def test_publishing_the_same_again_changes_nothing(weights: WeightStore) -> None:
    assert weights.publish(1, tensors()) == weights.publish(1, tensors())
    assert weights.latest() == 1


@pytest.mark.parametrize("version", [1, 2])
def test_a_version_that_is_not_newer_is_refused(weights: WeightStore, version: int) -> None:
    weights.publish(2, tensors(1.0))
    with pytest.raises(
        StoreRefused, match=f"weights version {version} of {EXPERIMENT} is not newer than the published 2; .* go on with 3"
    ):
        weights.publish(version, tensors(9.0))
    fetched = weights.fetch()
    assert fetched is not None
    assert fetched.tensors["policy.weight"][0, 0] == 1.0


def test_a_learner_that_lost_its_lease_publishes_nothing(weights: WeightStore, store: Store) -> None:
    names = {"key": keys.experiment_lease(EXPERIMENT), "token_key": keys.experiment_token(EXPERIMENT)}
    lease = Lease.acquire(store, owner="learner-0", ttl_s=60.0, **names)
    assert lease is not None
    weights.publish(1, tensors(), lease=lease)
    store.client.delete(names["key"])
    with pytest.raises(LeaseLost):
        weights.publish(2, tensors(), lease=lease)
    assert weights.latest() == 1


def test_weights_that_somebody_overwrote_are_refused(weights: WeightStore, store: Store) -> None:
    weights.publish(1, tensors(1.0))
    key = keys.experiment_weights_version(EXPERIMENT, 1)
    store.client.set(key, encode_tensors(tensors(2.0)))
    with pytest.raises(SchemaMismatch, match="version 1 of .* refused: SHA-256 is .* somebody overwrote them"):
        weights.fetch()


def test_weights_that_somebody_deleted_are_none(weights: WeightStore, store: Store) -> None:
    weights.publish(1, tensors())
    store.client.delete(keys.experiment_weights_version(EXPERIMENT, 1))
    assert weights.fetch() is None


def test_a_fetch_takes_the_newer_version_when_the_one_it_asked_for_was_collected(store: Store) -> None:
    """Four publications fall between the question and the fetch."""
    publisher = WeightStore(store, experiment=EXPERIMENT)
    publisher.publish(1, tensors(1.0))

    class Late(WeightStore):
        def latest(self) -> int:
            found = super().latest()
            if found == 1:
                for version in range(2, 2 + KEPT_VERSIONS):
                    publisher.publish(version, tensors(version))
            return found

    fetched = Late(store, experiment=EXPERIMENT).fetch_if_newer(0)
    assert fetched is not None
    assert fetched.version == 1 + KEPT_VERSIONS
