"""Every Prometheus metric of Rollstream, declared once: name, kind, unit, labels, and the sentence that a scrape shows as HELP.

Code refers to these objects, never to a name in quotes, so dashboards and documentation can be checked against this file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["COUNTERS", "METRICS", "Metric"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One metric.

    Attributes:
        name: without the `_total` that Prometheus appends to counters.
        unit: of its value, in words; `1` where it counts or tells a ratio.
        sentence: what it says, for people.
    """

    name: str
    kind: Literal["counter", "gauge"]
    unit: str
    sentence: str
    labels: tuple[str, ...] = ()


def _counter(name: str, unit: str, sentence: str, *labels: str) -> Metric:
    return Metric(name=f"rollstream_{name}", kind="counter", unit=unit, sentence=sentence, labels=labels)


def _gauge(name: str, unit: str, sentence: str, *labels: str) -> Metric:
    return Metric(name=f"rollstream_{name}", kind="gauge", unit=unit, sentence=sentence, labels=labels)


# -- what was done: the counters of `rollstream.metrics.Counters`

ENV_STEPS_SAMPLED = _counter("env_steps_sampled", "environment steps", "Environment steps that actors took.")
ENV_STEPS_TRAINED = _counter("env_steps_trained", "environment steps", "Environment steps that the learner trained on.")
ENV_STEPS_STORED = _counter("env_steps_stored", "environment steps", "Environment steps whose rows went into a replay table.")
ENV_STEPS_DROPPED = _counter(
    "env_steps_dropped",
    "environment steps",
    "Environment steps that were given up, by reason; nothing is dropped silently.",
    "reason",
)
ENV_STEPS_STALE = _counter(
    "env_steps_stale", "environment steps", "Environment steps that were given up for their old weights, by actor.", "actor"
)
UPDATES = _counter("updates", "updates", "Optimizer steps of the learner.")
UPDATES_SKIPPED = _counter("updates_skipped", "updates", "Optimizer steps left out because of a non-finite loss or gradient.")
ITEMS_INSERTED = _counter("items_inserted", "items", "Items that entered a replay table.")
ITEMS_SAMPLED = _counter("items_sampled", "items", "Items that were sampled from a replay table.")
ITEMS_EVICTED = _counter("items_evicted", "items", "Items that a replay table removed to stay within its bound.")
PRIORITIES_REFUSED = _counter("priorities_refused", "items", "Priorities refused because they were NaN, infinite or negative.")
EPISODES = _counter("episodes", "episodes", "Episodes that ended in training.")
PUBLICATIONS = _counter("publications", "versions", "Sets of weights that the learner published.")
EDGE_MESSAGES_READ = _counter("edge_messages_read", "messages", "Messages that were taken from an edge.")
EDGE_MESSAGES_REPEATED = _counter("edge_messages_repeated", "messages", "Messages that were delivered again and dropped.")
EDGE_MESSAGES_REFUSED = _counter(
    "edge_messages_refused", "messages", "Messages that could not be decoded and went to the dead letters, by reason.", "reason"
)
EDGE_MESSAGES_LOST = _counter("edge_messages_lost", "messages", "Messages that vanished from Redis before they were used.")
EDGE_GROUPS_MADE_AGAIN = _counter("edge_groups_made_again", "times", "Times that an edge vanished from Redis and was made again.")
ENVIRONMENT_RESTARTS = _counter("environment_restarts", "restarts", "Times that an environment was made anew after a fault.")
HTTP_REQUESTS = _counter("http_requests", "requests", "Requests answered, by route and status.", "route", "status")
OTHER = _counter("other", "1", "Counters of a flow's own steps, by name.", "name", "reason")

# -- how things stand

MEAN_RETURN = _gauge("mean_return", "reward", "Mean undiscounted return of the last finished training episodes.", "experiment")
LAG = _gauge("lag_versions", "versions", "Mean age of the weights that acted, when their rows were trained on.", "experiment")
WEIGHTS_VERSION = _gauge("weights_version", "versions", "Newest version of the weights that this process has.", "experiment")
ENV_STEPS_PER_S = _gauge("env_steps_per_s", "environment steps per second", "Sampled since the last report.", "experiment")
UPDATES_PER_S = _gauge("updates_per_s", "updates per second", "Optimizer steps since the last report.", "experiment")
TABLE_ITEMS = _gauge("table_items", "items", "Items in this shard of a replay table.", "table", "shard")
TABLE_BYTES = _gauge("table_bytes", "bytes", "Bytes of rows that this shard's items keep in Redis.", "table", "shard")
TABLE_UNREAD_ENTRIES = _gauge("table_unread_entries", "entries", "Log entries that the shard has not applied.", "table", "shard")
TABLE_BLOCKED_S = _gauge(
    "table_blocked_seconds",
    "seconds",
    "For how long writers and samplers of a replay table have both been waiting.",
    "table",
    "shard",
)
ORPHANS_SWEPT = _counter("orphans_swept", "chunks", "Chunks of rows deleted because no item and no writer needed them.")
REDIS_FULL = _gauge("redis_full", "1", "1 while Redis refuses what this process writes because its memory is full, otherwise 0.")
WAITED_S = _counter("waited_seconds", "seconds", "Time that somebody waited, including waits under way.", "who", "for_whom")
WAITING_S = _gauge("waiting_seconds", "seconds", "Age of a wait under way that is older than a second.", "who", "for_whom")
MEMBERS = _gauge("members", "members", "Members of the cell that renew their record, by role.", "role")
EXPERIMENTS = _gauge("experiments", "experiments", "Experiments of the cell, by phase.", "phase")
READY = _gauge("ready", "1", "1 when this process can do its job now, otherwise 0.")

METRICS: tuple[Metric, ...] = tuple(value for value in dict(globals()).values() if isinstance(value, Metric))
"""All of them, in the order of this file."""

COUNTERS: dict[str, Metric] = {
    metric.name.removeprefix("rollstream_"): metric
    for metric in METRICS
    if metric.kind == "counter" and metric.labels in ((), ("reason",), ("actor",))
}
"""The metric that shows a counter of `rollstream.metrics.Counters`, by the counter's name; its label is what the counter is split by."""
