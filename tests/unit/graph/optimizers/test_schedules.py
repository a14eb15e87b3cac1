"""Schedules, worked by hand."""

from __future__ import annotations

import doctest
import math
from typing import Any

import pytest

from rollstream.errors import ConfigError
from rollstream.graph.optimizers import (
    Constant,
    Cosine,
    Exponential,
    Linear,
    Piecewise,
    Polynomial,
    Schedule,
    schedule,
    schedules,
)

LENGTH = {"start": 4.0, "end": 1.0, "over_steps": 100}


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (Constant(3.0), [3.0, 3.0, 3.0, 3.0]),
        (Linear(**LENGTH), [4.0, 3.25, 2.5, 1.0]),
        (Polynomial(**LENGTH, power=2.0), [4.0, 1.0 + 3.0 * 0.5625, 1.75, 1.0]),
        (Exponential(**LENGTH), [4.0, 4.0 * 0.25**0.25, 2.0, 1.0]),
        (Cosine(**LENGTH), [4.0, 1.0 + 1.5 * (1.0 + math.sqrt(0.5)), 2.5, 1.0]),
        (Piecewise((4.0, 2.0, 1.0), boundaries=(25, 100)), [4.0, 2.0, 2.0, 1.0]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_numbers_on_the_way(made: Schedule, expected: list[float]) -> None:
    assert [made.at(count) for count in (0, 25, 50, 100)] == pytest.approx(expected)
    assert made.at(10_000) == pytest.approx(expected[-1])
    assert made.at(-5) == pytest.approx(expected[0])


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        (3, Constant(3.0)),
        (1e-3, Constant(1e-3)),
        (Linear(**LENGTH), Linear(**LENGTH)),
        ({"kind": "constant", "value": 2.0}, Constant(2.0)),
        ({"kind": "linear", **LENGTH}, Linear(**LENGTH)),
        ({"kind": "polynomial", "power": 2.0, **LENGTH}, Polynomial(**LENGTH, power=2.0)),
        ({"kind": "exponential", **LENGTH}, Exponential(**LENGTH)),
        ({"kind": "cosine", **LENGTH}, Cosine(**LENGTH)),
        ({"kind": "piecewise", "values": [1.0, 0.1], "boundaries": [10]}, Piecewise((1.0, 0.1), boundaries=(10,))),
    ],
    ids=str,
)
def test_short_forms(form: Any, expected: Schedule) -> None:
    assert schedule(form) == expected


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({"kind": "linaer", **LENGTH}, r"a schedule cannot be of kind 'linaer'; did you mean 'linear'\?"),
        ({"start": 1.0}, "a schedule cannot be of kind ''; known: constant, cosine"),
        ({"kind": "linear", "start": 1.0}, "a linear schedule takes start, end, over_steps; got start"),
        ({"kind": "constant"}, "a constant schedule takes value; got nothing"),
        (
            {"kind": "linear", **LENGTH, "power": 2.0},
            "a linear schedule takes start, end, over_steps; got end, over_steps, power, start",
        ),
        (
            {"kind": "cosine", **LENGTH, "over_steps": 0},
            "a schedule that changes needs over_steps > 0, got 0; for none give a number",
        ),
        ({"kind": "exponential", **LENGTH, "end": 0.0}, "an exponential schedule needs start and end > 0, got 4 and 0"),
        ({"kind": "polynomial", **LENGTH, "power": 0.0}, "a polynomial schedule needs power > 0, got 0"),
        (
            {"kind": "piecewise", "values": [1.0], "boundaries": [10]},
            "a piecewise schedule needs one value more than boundaries, got 1 and 1",
        ),
        (
            {"kind": "piecewise", "values": [1.0, 2.0, 3.0], "boundaries": [10, 10]},
            r"boundaries of a piecewise schedule must rise, got \[10, 10\]",
        ),
        ({"kind": "linear", **LENGTH, "start": "1e-3"}, "start of a linear schedule must be a number, got '1e-3'"),
        (
            {"kind": "piecewise", "values": [1.0, True], "boundaries": [1]},
            "values of a piecewise schedule must be a number, got True",
        ),
        ("fast", r"a schedule is a number or a mapping with a kind \(constant, linear, .*\), got 'fast'"),
        (True, "a schedule is a number or a mapping with a kind"),
    ],
    ids=str,
)
def test_forms_that_make_no_sense_are_refused(form: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        schedule(form)


def test_the_examples_run() -> None:
    outcome = doctest.testmod(schedules)
    assert outcome.attempted >= 6
    assert outcome.failed == 0
