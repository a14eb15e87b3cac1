"""The histogram of priorities: every item is counted once, whatever the span."""

from __future__ import annotations

import numpy as np
import pytest

from rollstream.replay.inspection import priority_histogram


def test_an_empty_table_has_no_bins() -> None:
    told = priority_histogram(np.zeros(0, np.float32), bins=5)
    assert (told["items"], told["zeros"], told["min"], told["mean"], told["edges"]) == (0, 0, None, None, [])


def test_zeros_are_counted_apart_and_equal_priorities_share_one_bin() -> None:
    told = priority_histogram(np.array([0, 0, 3, 3, 3], np.float32), bins=7)
    assert (told["zeros"], told["edges"], told["counts"]) == (2, [3.0, 3.0], [3])
    assert (told["min"], told["max"], told["mean"]) == (0.0, 3.0, pytest.approx(1.8))


def test_bins_have_equal_ratios_and_hold_every_item() -> None:
    priority = np.logspace(-12, 12, 1000).astype(np.float32)
    told = priority_histogram(priority, bins=24)
    edges = np.array(told["edges"])
    assert len(edges) == 25
    assert edges[1:] / edges[:-1] == pytest.approx(np.full(24, 10.0), rel=1e-3)
    assert sum(told["counts"]) == 1000
    assert max(told["counts"]) - min(told["counts"]) <= 3
