"""Which files of the chart are generated, and how: a test compares them with what stands in the chart."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from rollstream_control.chart.dashboard import dashboard
from rollstream_control.chart.schema import values_schema

__all__ = ["GENERATED"]


def _as_json(make: Callable[[], dict[str, Any]]) -> Callable[[], str]:
    return lambda: json.dumps(make(), indent=2, ensure_ascii=False) + "\n"


GENERATED: dict[str, Callable[[], str]] = {
    "values.schema.json": _as_json(values_schema),
    "dashboards/rollstream.json": _as_json(dashboard),
}
"""Path inside the chart, and what makes its text."""
