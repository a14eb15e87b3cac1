"""What `/metrics` answers: the declared metrics with the values of this process, in Prometheus' text format.

    Counters ─┐
    Waits    ─┼─ sources ─▶ Exposition (a collector in a prometheus-client registry) ─▶ text
    Gauges   ─┘

Values are read when a scrape asks for them; between scrapes nothing runs. A value that is not finite is left out: a gap
in a graph says "unknown", NaN breaks sums over it.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from rollstream.errors import ConfigError
from rollstream.metrics import names
from rollstream.metrics.counters import Counters, split_counter_key
from rollstream.metrics.names import METRICS, Metric
from rollstream.metrics.waits import Waits

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.metrics_core import Metric as Family

__all__ = ["CONTENT_TYPE", "Exposition", "Gauges", "Sample", "Source", "counters_source", "render", "waits_source"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One value of a declared metric."""

    metric: Metric
    value: float
    labels: Mapping[str, str] = field(default_factory=dict)


Source: TypeAlias = Callable[[], Iterable[Sample]]


class Gauges:
    """Values that somebody sets when they change. Thread-safe."""

    def __init__(self) -> None:
        self._samples: dict[tuple[str, tuple[tuple[str, str], ...]], Sample] = {}
        self._lock = threading.Lock()

    def set(self, metric: Metric, value: float | None, **labels: str) -> None:
        """Set the metric's value for these labels; None removes it."""
        if set(labels) != set(metric.labels):
            raise ConfigError(f"metric {metric.name} has the labels {list(metric.labels)}, got {sorted(labels)}")
        key = (metric.name, tuple(sorted(labels.items())))
        with self._lock:
            if value is None:
                self._samples.pop(key, None)
            else:
                self._samples[key] = Sample(metric=metric, value=float(value), labels=labels)

    def __call__(self) -> Iterable[Sample]:
        with self._lock:
            return list(self._samples.values())


def counters_source(counters: Counters) -> Source:
    """The process's counters; those that no metric is declared for show under `rollstream_other_total`."""

    def read() -> Iterator[Sample]:
        for key, value in counters.snapshot().items():
            name, reason = split_counter_key(key)
            metric = names.COUNTERS.get(name)
            if metric is None or bool(reason) != bool(metric.labels):
                yield Sample(metric=names.OTHER, value=value, labels={"name": name, "reason": reason})
            else:
                yield Sample(metric=metric, value=value, labels={metric.labels[0]: reason} if reason else {})

    return read


def waits_source(waits: Waits) -> Source:
    """Who waited for whom and how long in total, and who has been waiting for more than a second now."""

    def read() -> Iterator[Sample]:
        for total in waits.totals():
            labels = {"who": total.who, "for_whom": total.for_whom}
            yield Sample(metric=names.WAITED_S, value=total.total_s, labels=labels)
        longest: dict[tuple[str, str], float] = {}
        for wait in waits.now():
            pair = (wait.who, wait.for_whom)
            longest[pair] = max(wait.waited_s, longest.get(pair, 0.0))
        for (who, for_whom), waited_s in longest.items():
            yield Sample(metric=names.WAITING_S, value=waited_s, labels={"who": who, "for_whom": for_whom})

    return read


class Exposition:
    """Collects the samples of several sources for a prometheus-client registry."""

    def __init__(self, *sources: Source) -> None:
        self._sources = list(sources)

    def registry(self) -> CollectorRegistry:
        """A registry with this collector, and with the process's CPU seconds, memory and open files."""
        from prometheus_client import CollectorRegistry, ProcessCollector

        registry = CollectorRegistry(auto_describe=False)
        registry.register(self)
        ProcessCollector(registry=registry)
        return registry

    def collect(self) -> Iterator[Family]:
        """Called by the registry: one family for each metric that has a value, in the order of declaration."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        by_name: dict[str, list[Sample]] = {}
        for source in self._sources:
            for sample in source():
                by_name.setdefault(sample.metric.name, []).append(sample)
        for metric in METRICS:
            samples = [sample for sample in by_name.get(metric.name, []) if math.isfinite(sample.value)]
            if not samples:
                continue
            family_type = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
            family = family_type(metric.name, f"{metric.sentence} Unit: {metric.unit}.", labels=list(metric.labels))
            for sample in samples:
                family.add_metric([sample.labels[label] for label in metric.labels], sample.value)
            yield family


def render(registry: CollectorRegistry) -> bytes:
    """The registry's metrics in Prometheus' text format, to be sent as `CONTENT_TYPE`."""
    from prometheus_client import generate_latest

    return generate_latest(registry)
