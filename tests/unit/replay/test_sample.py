"""A sample as arrays, tensors and masks."""

from __future__ import annotations

import importlib.util
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rollstream.errors import SchemaMismatch
from rollstream.replay.run_batch import RunBatch, RunLayout
from rollstream.replay.sample import Sample
from rollstream.replay.samples import COLUMNS, SampledItems
from rollstream.replay.spec import TableSpec
from rollstream.spaces import Column, Flag, RowSpec, optional, ragged

ROWS = RowSpec(
    (
        Column(name="observation.camera", dtype="|u1", shape=(2, 2)),
        Column(name="reward", dtype="<f4"),
        *ragged(Column(name="tokens", dtype="<i4", shape=(4,))),
        *optional(Column(name="goal", dtype="<f4", shape=(3,))),
    )
)
LENGTH = np.array([4, 2, 5])
LEAD = np.array([1, 0, 2])


def sample(*, newest_version: int = 9) -> Sample:
    """Three items; rows are numbered from 1 through all of them."""
    batch = RunBatch(RunLayout(TableSpec(name="t", max_items=10, rows=ROWS.fields)), length=LENGTH, lead=LEAD)
    rows = np.zeros(LENGTH.sum(), ROWS.dtype)
    number = np.arange(1, len(rows) + 1)
    rows["version"] = rows["reward"] = number
    rows["observation.camera"] = number[:, None, None]
    rows["tokens"] = 7
    rows["tokens.length"] = number % 5
    rows["goal.present"] = number % 2
    batch.put(rows)
    arrays: dict[str, Any] = {name: np.frombuffer(bytes(3 * np.dtype(dtype).itemsize), dtype) for name, dtype in COLUMNS}
    arrays |= {"keys": np.array([1, 2**63, 3], np.uint64), "version": np.array([9, 4, 11], np.uint32)}
    items = SampledItems(**{**arrays, "length": LENGTH, "lead": LEAD}, table_items=10)
    return Sample.of(items, batch.finished(what="table t"), newest_version=newest_version)


def test_all_cores_begin_at_one_column() -> None:
    made = sample()
    assert made.core_start == 2
    assert made.rows["reward"].tolist() == [[0, 1, 2, 3, 4], [0, 0, 5, 6, 0], [7, 8, 9, 10, 11]]
    assert made.mask.astype(int).tolist() == [[0, 1, 1, 1, 1], [0, 0, 1, 1, 0], [1, 1, 1, 1, 1]]
    assert ((made.rows["flags"] == Flag.PAD) == ~made.mask).all()


def test_lag_counts_from_the_newest_version_and_is_never_negative() -> None:
    assert sample(newest_version=9).lag.tolist() == [0, 5, 0]


def test_columns_are_contiguous_and_keep_their_type() -> None:
    rows = sample().rows
    assert {name: column.dtype.str for name, column in rows.items()} == {
        "flags": "|u1",
        "version": "<u4",
        **{column.name: column.dtype for column in ROWS.columns},
    }
    assert all(column.flags.c_contiguous for column in rows.values())


@pytest.mark.parametrize("which", [slice(1, 3), np.array([True, False, True]), np.array([1])])
def test_a_part_keeps_its_items_and_where_their_cores_begin(which: Any) -> None:
    whole = sample()
    part = whole.part(which)
    assert part.keys.tolist() == whole.keys[which].tolist()
    assert part.lengths.tolist() == whole.lengths[which].tolist()
    assert part.core_start == 2
    assert part.table_items == 10
    assert part.weights is None
    assert all((part.rows[name] == whole.rows[name][which]).all() for name in whole.rows)


def test_no_items_have_a_core_too() -> None:
    assert len(sample().part(slice(0, 0))) == sample().part(slice(0, 0)).core_start == 0


def test_the_mask_of_a_ragged_column_tells_its_entries() -> None:
    made = sample()
    mask = made.mask_of("tokens")
    assert mask.shape == (3, 5, 4)
    assert mask.sum(axis=2).tolist() == made.rows["tokens.length"].tolist()
    assert mask[0, 3].tolist() == [True, True, True, False]
    assert not mask[~made.mask].any()


def test_the_mask_of_an_optional_column_tells_its_rows() -> None:
    made = sample()
    assert (made.mask_of("goal") == (made.mask & (made.rows["reward"] % 2 == 1))).all()


def test_other_columns_have_no_mask() -> None:
    with pytest.raises(SchemaMismatch, match="column 'reward' has no companion 'reward.length' or 'reward.present' among flags"):
        sample().mask_of("reward")


def test_tensors_share_memory_with_the_arrays() -> None:
    torch = pytest.importorskip("torch")
    made = sample()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # torch warns of arrays that cannot be written to
        tensors = made.torch()
    assert set(made.rows) < set(tensors)
    assert {name for name in tensors if name not in made.rows} == {
        f"item.{name}"
        for name in ("keys", "probability", "priority", "times_sampled", "lengths", "lead", "version", "lag", "age_rows", "mask")
    }
    tensors["reward"][0, 2] = 77.0
    assert made.rows["reward"][0, 2] == 77.0
    assert tensors["observation.camera"].dtype == torch.uint8
    assert tensors["item.keys"].tolist() == [1, 2**63, 3]


def test_bytes_become_numbers() -> None:
    made = sample()
    words = np.zeros((3, 5), "S3")
    words[0, 0] = b"ab"
    tensor = replace(made, rows={"word": words}).torch()["word"]
    assert tensor.shape == (3, 5, 3)
    assert tensor[0, 0].tolist() == [97, 98, 0]


@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="needs the extra jax")
def test_jax_arrays_keep_keys_whole() -> None:
    made = sample()
    arrays = made.jax()
    assert np.asarray(arrays["reward"]).tolist() == made.rows["reward"].tolist()
    assert arrays["item.keys"].tolist() == [1, 2**63, 3]
