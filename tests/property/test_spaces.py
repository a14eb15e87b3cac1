"""Laws of spaces: whatever nests, flattening and unflattening lose nothing, and bytes of a row are the whole value."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import batch_space
from hypothesis import given, settings
from hypothesis import strategies as st

from rollstream.spaces import SpaceLayout, row_spec

SHAPES = st.lists(st.integers(1, 3), min_size=0, max_size=3).map(tuple)
DTYPES = st.sampled_from([np.uint8, np.int16, np.int64, np.float16, np.float32, np.float64])
PLAIN = st.one_of(
    st.builds(lambda shape, dtype: spaces.Box(0, 100, shape, dtype), SHAPES, DTYPES),
    st.builds(lambda n, start: spaces.Discrete(n, start=start), st.integers(1, 9), st.integers(-9, 9)),
    st.builds(lambda shape: spaces.MultiDiscrete(np.full(shape or (1,), 4)), SHAPES),
    st.builds(lambda shape: spaces.MultiBinary(shape or (1,)), SHAPES),
)
SPACES = st.recursive(
    PLAIN,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: spaces.Tuple(tuple(parts))),
        st.dictionaries(st.text("abc", min_size=1, max_size=3), inner, min_size=1, max_size=3).map(spaces.Dict),
    ),
    max_leaves=5,
)


def equal(left: Any, right: Any) -> bool:
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(equal(left[key], right[key]) for key in left)
    if isinstance(left, tuple):
        return len(left) == len(right) and all(equal(a, b) for a, b in zip(left, right, strict=True))
    return bool(np.array_equal(left, right) and np.asarray(left).dtype == np.asarray(right).dtype)


@settings(deadline=None, max_examples=60)
@given(space=SPACES, batch=st.integers(1, 4), seed=st.integers(0, 99))
def test_a_batch_survives_columns_rows_and_back(space: spaces.Space[Any], batch: int, seed: int) -> None:
    batched = batch_space(space, batch)
    batched.seed(seed)
    value = batched.sample()
    layout = SpaceLayout(space, "observation")
    columns = layout.read(value, batch=batch)
    spec = row_spec(layout.leaves, ())
    rows = np.zeros(batch, spec.dtype)
    for name, column in columns.items():
        rows[name] = column
    decoded = np.frombuffer(rows.tobytes(), spec.dtype)
    assert equal(layout.write({name: decoded[name] for name in columns}), value)


@settings(deadline=None, max_examples=60)
@given(space=SPACES, batch=st.integers(1, 4), seed=st.integers(0, 99))
def test_values_one_for_each_copy_give_the_columns_of_the_batch(space: spaces.Space[Any], batch: int, seed: int) -> None:
    space.seed(seed)
    each = [space.sample() for _ in range(batch)]
    layout = SpaceLayout(space, "observation")
    columns = layout.read_each(each)
    assert all(equal(layout.write_one(columns, index), value) for index, value in enumerate(each))
