"""Running statistics: by hand, in every mode, over long runs, and joined from several actors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from rollstream.errors import SpaceError
from rollstream.graph import build
from rollstream.graph.component_test import component_test
from rollstream.graph.components.preprocessing import RunningNormalizer, Statistics, merge
from rollstream.graph.inputs import Input
from rollstream.graph.spaced import Spaces

BOX = spaces.Box(-1, 1, (2,))
SPACES: Spaces = {"output": {"x": BOX}, "observe": {"x": BOX, "weight": Input(name="weight", low=0.0, high=1.0)}}
EMPTY = {"count": 0.0, "mean": [0.0, 0.0], "mean_rest": [0.0, 0.0], "variance": [1.0, 1.0]}


@pytest.fixture
def observe(run: Callable[..., Any]) -> Callable[..., dict[str, Any]]:
    """State after rows [M, 2] with weights [M] were seen in the state given."""

    def call(state: dict[str, Any], x: Any, weight: Any) -> dict[str, Any]:
        written: dict[str, Any] = {}
        arrays = (np.asarray(x, np.float32), np.asarray(weight, np.float32))
        run(RunningNormalizer(), *arrays, state=state, api="observe", written=written)
        return written

    return call


def test_statistics_are_those_worked_out_by_hand(observe: Callable[..., Any]) -> None:
    once = observe(EMPTY, [[1.0, 10.0], [3.0, 10.0], [99.0, 99.0]], [1, 1, 0])
    assert (once["count"], once["mean"].tolist(), once["variance"].tolist()) == (2.0, [2.0, 10.0], [1.0, 0.0])
    twice = observe(once, [[8.0, 13.0]], [1])
    # 1, 3, 8: mean 4, squares 9 + 1 + 16; 10, 10, 13: mean 11, squares 1 + 1 + 4
    assert twice["mean"] == pytest.approx([4.0, 11.0], rel=1e-6)
    assert twice["variance"] == pytest.approx([26 / 3, 2.0], rel=1e-6)


def test_a_weight_of_two_is_the_row_twice(observe: Callable[..., Any]) -> None:
    one, other = observe(EMPTY, [[1.0, 2.0], [4.0, 0.0]], [2, 1]), observe(EMPTY, [[1.0, 2.0], [1.0, 2.0], [4.0, 0.0]], [1, 1, 1])
    for name, value in one.items():
        np.testing.assert_allclose(value, other[name], rtol=1e-6)


def test_padding_alone_changes_nothing(observe: Callable[..., Any]) -> None:
    state = observe(EMPTY, [[1.0, 2.0], [4.0, 0.0]], [1, 1])
    for before in (EMPTY, state):
        after = observe(before, [[7.0, 7.0]], [0])
        for name, value in before.items():
            np.testing.assert_array_equal(after[name], value)


def test_output_is_in_deviations_from_the_mean_and_clipped(run: Callable[..., Any]) -> None:
    state = {"mean": [1.0, 0.0], "variance": [4.0, 1e-8]}
    y = run(RunningNormalizer(epsilon=1e-12), np.array([[5.0, 1.0], [0.0, -1.0]], np.float32), state=state)
    np.testing.assert_allclose(y, [[2.0, 10.0], [-0.5, -10.0]], rtol=1e-5)
    raw = run(RunningNormalizer(), np.array([[5.0, -20.0]], np.float32), state=EMPTY)
    assert raw.tolist() == [[5.0, -10.0]]


def test_all_modes_agree() -> None:
    component_test(RunningNormalizer(), SPACES)


def test_what_was_observed_is_used(generator: np.random.Generator) -> None:
    built = build(RunningNormalizer(), SPACES, rows=256)
    x = generator.normal([5.0, -3.0], [2.0, 0.1], (256, 2)).astype(np.float32)
    built("observe", x=x, weight=np.ones(256, np.float32))
    y = built("output", x=x)["output"]
    np.testing.assert_allclose(y.mean(axis=0), 0.0, atol=1e-3)
    np.testing.assert_allclose(y.std(axis=0), 1.0, atol=1e-3)


def test_a_long_run_in_float32_stays_with_the_truth(generator: np.random.Generator) -> None:
    """A mean of 1,000 deviations, and a million rows: mean and deviation are right to a hundredth of a deviation."""
    built = build(RunningNormalizer(), SPACES, rows=1000)
    x = generator.normal([1000.0, -1000.0], 1.0, (20_000, 2)).astype(np.float32)
    ones = np.ones(1000, np.float32)
    for _ in range(50):
        for block in np.split(x, 20):
            built("observe", x=block, weight=ones)
    truth, state = x.astype(np.float64), built.memory.state_views
    assert state["count"] == 1e6
    np.testing.assert_allclose(state["mean"], truth.mean(axis=0), atol=0.01)
    np.testing.assert_allclose(np.sqrt(state["variance"]), truth.std(axis=0), rtol=0.01)


def test_a_count_of_a_hundred_million_neither_jumps_nor_drifts(
    observe: Callable[..., Any], generator: np.random.Generator
) -> None:
    state: dict[str, Any] = {**EMPTY, "count": 1e8, "mean": [3.0, -3.0], "variance": [4.0, 0.25]}
    for _ in range(1000):
        state = observe(state, generator.normal([3.0, -3.0], [2.0, 0.5], (256, 2)), np.ones(256))
    assert state["count"] == pytest.approx(1e8 + 256_000, rel=1e-6)
    np.testing.assert_allclose(state["mean"], [3.0, -3.0], atol=1e-4)
    np.testing.assert_allclose(state["variance"], [4.0, 0.25], rtol=1e-3)


def test_a_mean_far_from_0_still_follows_after_a_hundred_million_rows(observe: Callable[..., Any]) -> None:
    """Each batch moves it by a tenth of what float32 can tell apart at 1,000."""
    state: dict[str, Any] = {**EMPTY, "count": 1e8, "mean": [1000.0, -1000.0]}
    truth, count = 1000.0, 1e8
    for _ in range(1000):
        state = observe(state, np.full((256, 2), [1002.5, -1002.5]), np.ones(256))
        truth, count = truth + (1002.5 - truth) * 256 / (count + 256), count + 256
    assert truth > 1000.006
    np.testing.assert_allclose(state["mean"], [truth, -truth], atol=1e-4)


def test_merging_by_hand() -> None:
    parts = [
        Statistics(count=2.0, mean=np.array([2.0]), variance=np.array([1.0])),  # of 1 and 3
        Statistics(count=1.0, mean=np.array([8.0]), variance=np.array([0.0])),
        Statistics(count=0.0, mean=np.array([0.0]), variance=np.array([1.0])),
    ]
    joined = merge(parts)
    assert (joined.count, joined.mean.tolist()) == (3.0, [4.0])
    assert joined.variance == pytest.approx([26 / 3])


def test_nothing_merged_is_as_new() -> None:
    new = Statistics(count=0.0, mean=np.zeros(2), variance=np.ones(2))
    joined = merge([new, new])
    assert (joined.count, joined.mean.tolist(), joined.variance.tolist()) == (0.0, [0.0, 0.0], [1.0, 1.0])


def test_a_weight_of_another_shape_is_refused() -> None:
    spaces_of = {"observe": {"x": BOX, "weight": Input(name="weight", shape=(2,))}}
    with pytest.raises(SpaceError, match=r"RunningNormalizer.observe, argument weight: needs the shape \[B\], got \[2, 2\]"):
        build(RunningNormalizer(), spaces_of)
