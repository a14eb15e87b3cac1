"""N actors that each saw a part of the rows have, once merged, the statistics of one that saw all."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from rollstream.graph import build
from rollstream.graph.components.preprocessing import RunningNormalizer, Statistics, merge
from rollstream.graph.inputs import Input

BLOCK_ROWS = 8
SPACES = {
    "observe": {"x": Input(name="x", shape=(2,)), "weight": Input(name="weight")},
}
NORMALIZER = build(RunningNormalizer(), SPACES, rows=BLOCK_ROWS)


def seen(rows: np.ndarray, weight: np.ndarray) -> Statistics:
    """What one actor knows after these rows, block by block."""
    state = NORMALIZER.memory.state_views
    for name, first in (("count", 0.0), ("mean", 0.0), ("mean_rest", 0.0), ("variance", 1.0)):
        state[name][...] = first
    for start in range(0, len(rows), BLOCK_ROWS):
        block, count = np.zeros((BLOCK_ROWS, 2), np.float32), np.zeros(BLOCK_ROWS, np.float32)
        here = rows[start : start + BLOCK_ROWS]
        block[: len(here)], count[: len(here)] = here, weight[start : start + BLOCK_ROWS]
        NORMALIZER("observe", x=block, weight=count)
    return Statistics(count=float(state["count"]), mean=state["mean"].copy(), variance=state["variance"].copy())


@given(data=st.data(), parts=st.integers(1, 5), total=st.integers(1, 60))
def test_merged_actors_are_one(data: st.DataObject, parts: int, total: int) -> None:
    elements = st.floats(-100.0, 100.0, width=32)
    rows = data.draw(arrays.arrays(np.float32, (total, 2), elements=elements))
    weight = data.draw(arrays.arrays(np.float32, total, elements=st.sampled_from([0.0, 0.5, 1.0, 2.0])))
    owner = data.draw(arrays.arrays(np.int64, total, elements=st.integers(0, parts - 1)))
    merged = merge([seen(rows[owner == actor], weight[owner == actor]) for actor in range(parts)])
    one = seen(rows, weight)
    assert merged.count == one.count == weight.sum()
    scale = 1.0 + np.abs(rows).max()
    np.testing.assert_allclose(merged.mean, one.mean, atol=1e-5 * scale)
    np.testing.assert_allclose(merged.variance, one.variance, atol=1e-5 * scale**2)
    if one.count:
        exact = np.average(rows.astype(np.float64), axis=0, weights=weight)
        np.testing.assert_allclose(one.mean, exact, atol=1e-5 * scale)
        spread = np.average((rows - exact) ** 2, axis=0, weights=weight)
        np.testing.assert_allclose(one.variance, spread, atol=1e-5 * scale**2)
