"""What is measured: counters that add up, waits that name both sides, reports, where they go, and the names of all metrics."""

from rollstream.metrics import names
from rollstream.metrics.counters import Counters, counter_key, env_steps_in_flight, split_counter_key
from rollstream.metrics.exposition import CONTENT_TYPE, Exposition, Gauges, Sample, Source, counters_source, render, waits_source
from rollstream.metrics.learning_curve import draw_learning_curve
from rollstream.metrics.names import METRICS, Metric
from rollstream.metrics.report import Report, finite_or_none
from rollstream.metrics.sinks import JsonLines, Sink, TensorBoard, read_json_lines
from rollstream.metrics.waits import Wait, Waiting, Waits, WaitTotal

__all__ = [
    "CONTENT_TYPE",
    "METRICS",
    "Counters",
    "Exposition",
    "Gauges",
    "JsonLines",
    "Metric",
    "Report",
    "Sample",
    "Sink",
    "Source",
    "TensorBoard",
    "Wait",
    "WaitTotal",
    "Waiting",
    "Waits",
    "counter_key",
    "counters_source",
    "draw_learning_curve",
    "env_steps_in_flight",
    "finite_or_none",
    "names",
    "read_json_lines",
    "render",
    "split_counter_key",
    "waits_source",
]
