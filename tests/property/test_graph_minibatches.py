"""Minibatches lose nothing and invent nothing."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rollstream.graph.inputs import Input
from rollstream.graph.minibatches import Minibatches


@given(rows=st.lists(st.integers(1, 50), min_size=1, max_size=4), batch_rows=st.integers(1, 12), seed=st.integers(0, 99))
@settings(deadline=None, max_examples=80)
def test_each_round_has_every_row_once_in_minibatches_of_nearly_equal_size(rows: list[int], batch_rows: int, seed: int) -> None:
    batches = Minibatches([Input(name="x"), Input(name="weight")], batch_rows=batch_rows)
    generator = np.random.default_rng(seed)
    for count in rows:
        batches.reserve(count)
        batches.shuffle({"x": np.arange(count, dtype=np.float32)}, rows=count, generator=generator)
        used = batches.count(count) * batch_rows
        weight, x = batches.buffers["weight"][:used], batches.buffers["x"][:used]
        assert sorted(x[weight == 1].tolist()) == list(range(count))
        assert set(weight.tolist()) <= {0.0, 1.0}
        sizes = weight.reshape(-1, batch_rows).sum(axis=1)
        assert sizes.max() - sizes.min() <= 1
