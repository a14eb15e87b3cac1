"""Shuffling into minibatches of fixed size."""

from __future__ import annotations

import numpy as np
import pytest

from rollstream.errors import ConfigError, SchemaMismatch
from rollstream.graph.inputs import Input
from rollstream.graph.minibatches import Minibatches

INPUTS = [Input(name="x", shape=(2,)), Input(name="weight"), Input(name="clip", role="scalar", per_row=False)]


def _columns(rows: int) -> dict[str, np.ndarray]:
    return {"x": np.arange(2 * rows, dtype=np.float32).reshape(rows, 2)}


def test_every_row_comes_exactly_once_and_padding_weighs_nothing(generator: np.random.Generator) -> None:
    batches = Minibatches(INPUTS, batch_rows=4)
    batches.reserve(10)
    batches.shuffle(_columns(10), rows=10, generator=generator)
    weight, x = batches.buffers["weight"], batches.buffers["x"]
    assert len(weight) == 12
    assert sorted(x[weight > 0, 0].tolist()) == list(range(0, 20, 2))
    assert set(x[weight == 0, 0].tolist()) <= set(range(0, 20, 2))


def test_rows_are_divided_evenly_so_that_no_minibatch_has_only_a_few(generator: np.random.Generator) -> None:
    batches = Minibatches(INPUTS, batch_rows=4)
    batches.reserve(9)
    batches.shuffle(_columns(9), rows=9, generator=generator)
    assert batches.buffers["weight"].reshape(3, 4).sum(axis=1).tolist() == [3, 3, 3]


def test_weights_that_are_given_are_kept(generator: np.random.Generator) -> None:
    batches = Minibatches(INPUTS, batch_rows=2)
    batches.reserve(3)
    batches.shuffle({**_columns(3), "weight": np.array([1, 2, 3], np.float32)}, rows=3, generator=generator)
    assert sorted(batches.buffers["weight"].tolist()) == [0, 1, 2, 3]


def test_buffers_grow_only_when_more_rows_come_than_ever_before() -> None:
    batches = Minibatches(INPUTS, batch_rows=4)
    assert [batches.reserve(rows) for rows in (4, 3, 9, 12, 13)] == [True, False, True, False, True]


def test_float64_and_read_only_columns_are_taken(generator: np.random.Generator) -> None:
    batches = Minibatches(INPUTS, batch_rows=2)
    batches.reserve(2)
    x = np.ones((2, 2))
    x.flags.writeable = False
    batches.shuffle({"x": x}, rows=2, generator=generator)
    assert batches.buffers["x"].tolist() == [[1, 1], [1, 1]]


def test_what_is_missing_or_does_not_fit_is_refused(generator: np.random.Generator) -> None:
    batches = Minibatches(INPUTS, batch_rows=2)
    batches.reserve(2)
    with pytest.raises(ConfigError, match="needs at least 1 row, got 0"):
        batches.count(0)
    with pytest.raises(SchemaMismatch, match="the loss reads column x, which is missing; the batch has weight"):
        batches.shuffle({"weight": np.ones(2, np.float32)}, rows=2, generator=generator)
    with pytest.raises(SchemaMismatch, match=r"column x has shape \[2, 3\], the loss was built for \[2, 2\]"):
        batches.fill({"x": np.ones((2, 3))})
    with pytest.raises(ConfigError, match="3 rows are not a multiple of batch_rows 2, and the loss has no weight to pad with"):
        Minibatches(INPUTS[:1], batch_rows=2).count(3)
