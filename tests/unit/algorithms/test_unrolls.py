"""Sequences of T steps and one more: where they begin, what is repeated, what is left out."""

from __future__ import annotations

import numpy as np

from rollstream.algorithms.unrolls import unrolls


def made(lengths: list[int], **columns: list[float]) -> dict[str, np.ndarray]:
    """Rows numbered from 0 in environments of these lengths, whose last rows bootstrap."""
    begins = np.concatenate([[1] + [0] * (length - 1) for length in lengths]).astype(np.uint8)
    weight = np.concatenate([[1.0] * (length - 1) + [0.0] for length in lengths]).astype(np.float32)
    rows = np.arange(len(begins), dtype=np.float32)
    return {"begins": begins, "weight": weight, "row": rows, "recurrent.torso": rows[:, None]}


def test_the_last_row_of_a_sequence_is_the_first_of_the_next() -> None:
    found = unrolls(made([6]), steps=3)
    assert found["row"].tolist() == [[0, 1, 2, 3], [3, 4, 5, 5]]
    assert found["weight"].tolist() == [[1, 1, 1, 1], [1, 1, 0, 0]]
    assert found["recurrent.torso"].tolist() == [[0], [3]]
    assert "begins" not in found


def test_a_sequence_never_reaches_into_another_environment() -> None:
    found = unrolls(made([4, 3]), steps=3)
    assert found["row"].tolist() == [[0, 1, 2, 3], [4, 5, 6, 6]]


def test_sequences_in_which_nothing_is_learned_are_left_out() -> None:
    columns = made([6])
    columns["weight"][3:] = 0  # an episode was truncated there, and its final row is the last
    assert unrolls(columns, steps=3)["row"].tolist() == [[0, 1, 2, 3]]
    assert unrolls(made([4]), steps=3)["row"].tolist() == [[0, 1, 2, 3]]


def test_every_step_is_learned_once() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        columns = made([int(length) for length in rng.integers(2, 12, size=5)])
        found = unrolls(columns, steps=4)
        learned = found["row"][:, :-1][found["weight"][:, :-1] > 0]
        assert sorted(learned.tolist()) == columns["row"][columns["weight"] > 0].tolist()
