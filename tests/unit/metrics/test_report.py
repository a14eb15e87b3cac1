"""Reports are plain numbers, and None where there is none."""

from __future__ import annotations

import json

import numpy as np
import pytest

from rollstream.errors import SchemaMismatch
from rollstream.metrics import Report, finite_or_none


def test_a_report_survives_its_json_form() -> None:
    report = Report(
        experiment="x-1", number=3, env_steps=100, mean_return=21.5, waits={"learner -> actors": 0.5}, metrics={"loss": 0.25},
        counters={"updates": 4}, tables={"replay": {"items": 10.0}},
    )  # fmt: skip
    assert Report.from_json(json.loads(json.dumps(report.to_json(), allow_nan=False))) == report


def test_numpy_numbers_become_plain_ones() -> None:
    report = Report(mean_return=np.float32(0.5), metrics={"loss": np.float64(2.0)}, env_steps=np.int64(7))  # type: ignore[arg-type]
    assert json.dumps(report.to_json())
    assert (report.mean_return, report.env_steps) == (0.5, 7)


def test_fields_of_a_newer_release_are_passed_over() -> None:
    assert Report.from_json({"env_steps": 5, "a_new_number": 1}) == Report(env_steps=5)


def test_what_is_not_a_report_is_refused() -> None:
    with pytest.raises(SchemaMismatch, match="not a report: Expected `int`"):
        Report.from_json({"env_steps": "many"})


def test_only_finite_numbers_are_numbers() -> None:
    assert finite_or_none(1.5) == 1.5
    assert finite_or_none(float("nan")) is None
    assert finite_or_none(float("-inf")) is None
    assert finite_or_none(None) is None
