"""O69, O62: every publication left its weights behind for ever. At most four versions stay in Redis."""

from __future__ import annotations

import numpy as np

from rollstream.store import Store
from rollstream.weights import KEPT_VERSIONS, WeightStore


def test_at_most_four_versions_stay_in_redis(store: Store) -> None:
    weights = WeightStore(store, experiment="x-1")
    for version in range(1, 101):
        weights.publish(3 * version, {"w": np.full(1_000, version, np.float32)})
    kept = sorted(key for key in store.client.keys("rs:exp:x-1:weights:*"))
    assert kept == [f"rs:exp:x-1:weights:{version}".encode() for version in (291, 294, 297, 300)]
    assert len(kept) == KEPT_VERSIONS
    assert store.client.hlen("rs:exp:x-1:weights") == KEPT_VERSIONS + 1
    assert weights.fetch(291) is not None
    assert weights.fetch(288) is None
