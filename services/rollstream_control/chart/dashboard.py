"""The Grafana dashboard, built from the metrics that are declared once in `rollstream.metrics.names`.

    rows:  learning · speed · waiting · tables · cell          a panel = title, unit of Grafana, one query per line

A panel refers to a metric object, so a renamed metric cannot leave an empty panel behind.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from rollstream.metrics import names
from rollstream.metrics.names import Metric

__all__ = ["dashboard"]

SELECTOR = '{namespace=~"$namespace",experiment=~"$experiment"}'
CELL = '{namespace=~"$namespace"}'
WIDTH, HEIGHT, COLUMNS = 12, 8, 24
DATA_SOURCE = {"type": "prometheus", "uid": "${datasource}"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One query and how its lines are called."""

    query: str
    legend: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One graph."""

    title: str
    unit: str
    lines: tuple[Line, ...]
    about: str


def dashboard() -> dict[str, Any]:
    """The dashboard as Grafana imports it."""
    return {
        "uid": "rollstream",
        "title": "Rollstream",
        "description": "Learning, speed, waiting, tables and members of Rollstream cells.",
        "tags": ["rollstream"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "15s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": _variables()},
        "panels": list(_placed(_panels())),
    }


def _panels() -> Iterable[Panel]:
    yield _gauge("Mean return", names.MEAN_RETURN, "short", "{{experiment}}", SELECTOR)
    yield _gauge("Lag of the policy that acted", names.LAG, "short", "{{experiment}}", SELECTOR)
    yield Panel(
        title="Environment steps per second",
        unit="short",
        lines=(
            Line(query=f"sum by (pod) ({_rate(names.ENV_STEPS_SAMPLED)})", legend="sampled by {{pod}}"),
            Line(query=f"sum({_rate(names.ENV_STEPS_TRAINED)})", legend="trained"),
        ),
        about=names.ENV_STEPS_SAMPLED.sentence,
    )
    yield _rates("Updates per second", names.UPDATES, "{{pod}}", "pod")
    yield _rates("Environment steps given up, by reason", names.ENV_STEPS_DROPPED, "{{reason}}", "reason")
    yield _rates("Seconds waited per second", names.WAITED_S, "{{who}} for {{for_whom}}", "who, for_whom")
    yield _gauge("Waits under way", names.WAITING_S, "s", "{{who}} for {{for_whom}}", CELL)
    yield Panel(
        title="Items per second",
        unit="short",
        lines=(
            Line(query=f"sum({_rate(names.ITEMS_INSERTED)})", legend="inserted"),
            Line(query=f"sum({_rate(names.ITEMS_SAMPLED)})", legend="sampled"),
            Line(query=f"sum({_rate(names.ITEMS_EVICTED)})", legend="evicted"),
        ),
        about=names.ITEMS_INSERTED.sentence,
    )
    yield _gauge("Items in tables", names.TABLE_ITEMS, "short", "{{table}} shard {{shard}}", CELL)
    yield _gauge("Bytes of tables", names.TABLE_BYTES, "bytes", "{{table}} shard {{shard}}", CELL)
    yield _gauge("Unread log entries", names.TABLE_UNREAD_ENTRIES, "short", "{{table}} shard {{shard}}", CELL)
    yield _gauge("Members by role", names.MEMBERS, "short", "{{role}}", CELL)
    yield _gauge("Experiments by phase", names.EXPERIMENTS, "short", "{{phase}}", CELL)


def _name(metric: Metric) -> str:
    """As Prometheus stores it."""
    return f"{metric.name}_total" if metric.kind == "counter" else metric.name


def _rate(metric: Metric) -> str:
    return f"rate({_name(metric)}{CELL}[$__rate_interval])"


def _gauge(title: str, metric: Metric, unit: str, legend: str, selector: str) -> Panel:
    return Panel(title=title, unit=unit, lines=(Line(query=_name(metric) + selector, legend=legend),), about=metric.sentence)


def _rates(title: str, metric: Metric, legend: str, by: str) -> Panel:
    lines = (Line(query=f"sum by ({by}) ({_rate(metric)})", legend=legend),)
    return Panel(title=title, unit="short", lines=lines, about=metric.sentence)


def _placed(panels: Iterable[Panel]) -> Iterable[dict[str, Any]]:
    for number, panel in enumerate(panels):
        column, row = number % (COLUMNS // WIDTH), number // (COLUMNS // WIDTH)
        yield {
            "id": number + 1,
            "type": "timeseries",
            "title": panel.title,
            "description": panel.about,
            "datasource": DATA_SOURCE,
            "gridPos": {"x": column * WIDTH, "y": row * HEIGHT, "w": WIDTH, "h": HEIGHT},
            "fieldConfig": {"defaults": {"unit": panel.unit}, "overrides": []},
            "targets": [
                {"refId": chr(ord("A") + place), "datasource": DATA_SOURCE, "expr": line.query, "legendFormat": line.legend}
                for place, line in enumerate(panel.lines)
            ],
        }


def _variables() -> list[dict[str, Any]]:
    return [
        {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"},
        _labels("namespace", f"label_values({_name(names.MEMBERS)}, namespace)"),
        _labels("experiment", f"label_values({_name(names.WEIGHTS_VERSION)}{CELL}, experiment)"),
    ]


def _labels(name: str, query: str) -> dict[str, Any]:
    return {
        "name": name,
        "type": "query",
        "label": name.capitalize(),
        "datasource": DATA_SOURCE,
        "query": {"query": query, "refId": name},
        "refresh": 2,
        "includeAll": True,
        "multi": True,
        "current": {"text": "All", "value": "$__all"},
    }
