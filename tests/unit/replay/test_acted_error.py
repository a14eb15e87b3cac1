"""Priorities that actors compute from the values they acted by."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rollstream.errors import ConfigError, NonFiniteError
from rollstream.replay import ActedError, NStep, Sequence
from rollstream.replay.open_steps import OpenSteps
from rollstream.spaces import Flag

FLAGS = {"f": Flag.FIRST, ".": 0, "E": Flag.FINAL | Flag.TERMINATED, "T": Flag.FINAL | Flag.TRUNCATED}


def steps(letters: str, **columns: Any) -> OpenSteps:
    """Open rows of one environment, all of them fresh."""
    return OpenSteps(
        columns={
            "flags": np.array([FLAGS[letter] for letter in letters], np.uint8),
            **{name: np.array(column, np.float32) for name, column in columns.items()},
        },
        offsets=np.array([0, len(letters)]),
        fresh=np.array([len(letters)]),
        before=np.zeros(1, np.int64),
    )


VALUES: Any = {"reward": [1.0, 2.0, 4.0, 0.0], "q_taken": [1.0, 1.0, 1.0, 9.0], "q_max": [8.0, 8.0, 6.0, 10.0]}


@pytest.mark.parametrize(("letters", "bootstrap"), [("f..T", 10.0), ("f..E", 0.0)])
def test_an_n_step_item_has_the_error_of_its_whole_span(letters: str, bootstrap: float) -> None:
    """Two steps each: rows 0 to 2, 1 to 3, and the short one at the end, 2 to 3. A truncated episode is bootstrapped from, a
    terminated one is not."""
    runs = NStep(2, priority=ActedError(0.5)).items(steps(letters, **VALUES))
    wanted = [1 + 0.5 * 2 + 0.25 * 6 - 1, 2 + 0.5 * 4 + 0.25 * bootstrap - 1, 4 + 0.5 * bootstrap - 1]
    assert runs.priority == pytest.approx(wanted)


def test_the_sign_is_dropped_and_the_floor_added() -> None:
    low = {"reward": [0.0, 0.0], "q_taken": [3.0, 0.0], "q_max": [0.0, 2.0]}
    runs = NStep(1, priority=ActedError(0.5, floor=0.25)).items(steps("fT", **low))
    assert runs.priority == pytest.approx([abs(0.5 * 2 - 3) + 0.25])


def test_a_sequence_mixes_the_errors_of_its_steps_without_those_of_its_lead() -> None:
    """Errors over two steps, cut at the end of the item: as above, of rows 1 and 2; row 0 is lead of the second sequence."""
    rule = Sequence(length=2, stride=1, burn_in=1, tail="drop", priority=ActedError(0.5, steps=2, eta=0.9))
    runs = rule.items(steps("f..T", **VALUES))
    first = [1 + 0.5 * 2 + 0.25 * 6 - 1, 2 + 0.5 * 6 - 1]
    second = [2 + 0.5 * 4 + 0.25 * 10 - 1, 4 + 0.5 * 10 - 1]
    assert runs.priority == pytest.approx([0.9 * max(pair) + 0.1 * sum(pair) / 2 for pair in (first, second)])


def test_compressed_values_give_compressed_errors() -> None:
    """h(3) = sqrt(4) - 1 + 0.003 = 1.003; the bootstrap value 1.003 stands for 3: h(1 + 0.5 * 3) - 0.5."""
    values = {"reward": [1.0, 0.0], "q_taken": [0.5, 0.0], "q_max": [0.0, 1.003]}
    runs = NStep(1, priority=ActedError(0.5, compressed=True)).items(steps("fT", **values))
    assert runs.priority == pytest.approx([np.sqrt(3.5) - 1 + 0.0025 - 0.5], rel=1e-5)


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"ActedError: discount and eta must be between 0 and 1, got 1\.5 and 0\.9"):
        ActedError(1.5)
    with pytest.raises(ConfigError, match="ActedError: steps must be >= 1, or None for whole items, got 0"):
        ActedError(0.9, steps=0)
    with pytest.raises(NonFiniteError, match="columns reward, q_taken, q_max have a NaN or an infinity where item priorities"):
        NStep(1, priority=ActedError(0.9)).items(
            steps("fT", **{**VALUES, "reward": [1, 0], "q_taken": [np.nan, 0], "q_max": [0, 0]})
        )
