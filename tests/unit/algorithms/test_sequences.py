"""Rows as sequences."""

from __future__ import annotations

import numpy as np

from rollstream.algorithms.sequences import sequences


def test_runs_are_cut_and_their_ends_are_padded_with_weight_zero() -> None:
    columns = {
        "x": np.arange(8) * 10,
        "recurrent.torso": np.arange(16).reshape(8, 2),
        "begins": np.array([1, 0, 0, 0, 0, 1, 0, 0], np.uint8),
    }
    found = sequences(columns, steps=3)
    assert found["x"].tolist() == [[0, 10, 20], [30, 40, 40], [50, 60, 70]]
    assert found["weight"].tolist() == [[1, 1, 1], [1, 1, 0], [1, 1, 1]]
    assert found["recurrent.torso"].tolist() == [[0, 1], [6, 7], [10, 11]]
    assert set(found) == {"x", "recurrent.torso", "weight"}


def test_given_weights_are_kept() -> None:
    columns = {"weight": np.array([0.5, 0.25], np.float32), "begins": np.array([1, 1], np.uint8)}
    assert sequences(columns, steps=2)["weight"].tolist() == [[0.5, 0.0], [0.25, 0.0]]
