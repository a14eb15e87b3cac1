"""The small steps: standardize, concatenate, schedules, priorities, storing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rollstream.errors import NonFiniteError, SchemaMismatch
from rollstream.flow import (
    TableHandle,
    concatenate,
    filter_lag,
    publish,
    return_priorities,
    standardize,
    store_into,
    sync_target,
)
from rollstream.flow.toy import ToyActor, ToyLearner, ToyTable
from rollstream.spaces import Batch

REPLAY = TableHandle(name="replay")


def batch(**columns: Any) -> Batch:
    return Batch(columns={name: np.asarray(column) for name, column in columns.items()}, env_steps=2, version=1, newest_version=1)


def test_standardize_gives_mean_zero_and_deviation_one_and_leaves_the_rest() -> None:
    before = batch(advantage=np.array([1.0, 3.0], np.float32), other=np.array([5.0, 6.0]))
    after = standardize("advantage").bind(None)(before)
    assert after.columns["advantage"].tolist() == pytest.approx([-1.0, 1.0])
    assert after.columns["advantage"].dtype == np.float32
    assert after.columns["other"] is before.columns["other"]
    assert before.columns["advantage"].tolist() == [1.0, 3.0]


def test_standardize_makes_a_constant_column_zero_and_leaves_an_empty_batch_alone() -> None:
    step = standardize("advantage").bind(None)
    assert step(batch(advantage=np.full(2, 4.0, np.float32))).columns["advantage"].tolist() == [0.0, 0.0]
    assert step(batch(advantage=np.zeros(0, np.float32))).rows == 0


def test_standardize_refuses_values_that_are_not_finite() -> None:
    with pytest.raises(NonFiniteError, match="column 'advantage' has values that are not finite"):
        standardize("advantage").bind(None)(batch(advantage=np.array([1.0, np.nan])))


def test_standardize_names_the_column_that_is_missing() -> None:
    with pytest.raises(SchemaMismatch, match="standardize needs the column 'advantage'; the batch has: x"):
        standardize("advantage").bind(None)(batch(x=[1.0]))


def test_concatenate_joins_rows_steps_versions_and_metrics() -> None:
    joined = concatenate().bind(None)(
        (
            Batch(columns={"x": np.array([1])}, env_steps=1, version=3, newest_version=4, metrics={"loss": 1.0, "a": 2.0}),
            Batch(columns={"x": np.array([2])}, env_steps=2, version=2, newest_version=2, metrics={"loss": 5.0}),
        )
    )
    assert joined.columns["x"].tolist() == [1, 2]
    assert (joined.env_steps, joined.version, joined.newest_version) == (3, 2, 4)
    assert joined.metrics == {"loss": 5.0, "a": 2.0}


def test_nothing_cannot_be_concatenated() -> None:
    with pytest.raises(SchemaMismatch, match="cannot join no batches"):
        concatenate().bind(None)(())


def test_an_interval_counts_updates_not_items() -> None:
    side = ToyLearner()
    step = publish(every_updates=3).bind(side)
    published = []
    for updates in (1, 2, 3, 4, 9, 10):
        side.updated = updates
        step(batch(x=[1]))
        published.append(side.published)
    assert published == [1, 1, 2, 2, 3, 3]


def test_an_interval_goes_on_where_it_was_after_a_restart() -> None:
    side = ToyLearner(updated=5)
    step: Any = sync_target(every_updates=4).bind(side)
    side.updated = 8
    saved = step.state()
    again: Any = sync_target(every_updates=4).bind(side)
    again.restore(saved)
    side.updated = 9
    again(batch(x=[1]))
    assert side.synced == 1


def test_priorities_are_the_sizes_of_the_errors() -> None:
    table = ToyTable()
    step = return_priorities(REPLAY).bind(ToyLearner(tables={"replay": table}))
    step(batch(key=np.array([3, 9], np.uint64), td_error=np.array([-2.0, 0.5], np.float32)))
    assert table.priorities == {3: 2.0, 9: 0.5}


def test_priorities_need_a_key_and_an_error() -> None:
    step = return_priorities(REPLAY).bind(ToyLearner(tables={"replay": ToyTable()}))
    with pytest.raises(SchemaMismatch, match="return_priorities needs the column 'td_error'; the batch has: key"):
        step(batch(key=[1]))


def test_storing_leaves_only_what_counts() -> None:
    table = ToyTable()
    side = ToyActor(tables={"replay": table}, environments=2)
    counts = store_into(REPLAY, "3-step").bind(side)(side.collect(steps=3))
    assert table.items == 6
    assert (counts.env_steps, counts.rows, len(counts.episodes)) == (6, 0, 2)
    assert counts.metrics["stored_items"] == 6.0


def test_without_a_bound_on_lag_everything_is_kept() -> None:
    assert filter_lag(max_lag=None).bind(ToyLearner(published=99))(batch(x=[1])) is True
