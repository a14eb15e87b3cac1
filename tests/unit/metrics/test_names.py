"""Every metric is declared once, with unit and sentence."""

from __future__ import annotations

import re

from rollstream.metrics import METRICS


def test_names_are_unique_and_well_formed() -> None:
    names = [metric.name for metric in METRICS]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"rollstream_[a-z][a-z0-9_]*", name) for name in names)


def test_every_metric_has_a_unit_and_a_sentence() -> None:
    for metric in METRICS:
        assert metric.unit
        assert metric.sentence.endswith("."), metric.name


def test_no_counter_carries_the_suffix_that_prometheus_appends() -> None:
    assert not [metric.name for metric in METRICS if metric.name.endswith("_total")]
