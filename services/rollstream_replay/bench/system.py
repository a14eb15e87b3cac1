"""What is common to the systems that are measured: tables, variants of an operation, and one timed run of some clients.

A *variant* is one way to do an operation, e.g. `structured_writer` flushed every 256 items. Variants of one *api* are settings of the
same thing, of which the best one counts.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias, get_args

import numpy as np

from rollstream.clock import Clock
from rollstream_replay.bench.line_process import LineProcess, ask_all
from rollstream_replay.bench.payloads import Payload

__all__ = [
    "BATCH_ITEMS",
    "OPERATIONS",
    "Figure",
    "Operation",
    "Run",
    "System",
    "TableCase",
    "Variant",
    "figure_of",
    "rss_bytes",
    "run_clients",
]

Operation: TypeAlias = Literal["insert", "sample", "sample_strict", "update"]
OPERATIONS: tuple[str, ...] = get_args(Operation)
FLUSH_ITEMS = (40, 256, 1000, 4000)
"""Items between two flushes that are tried, for every system."""
FLUSH_BYTES_MAX = 64 << 20
BATCH_ITEMS = 256
LARGE_BATCH_ITEMS = 32
LARGE_PAYLOAD_BYTES = 100_000
ANSWER_WITHIN_S = 180.0
"""How long an operation may take beyond the time that it was given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCase:
    """One table that both systems hold, and what fills it before anything is read."""

    payload: Payload
    selector: str
    max_items: int
    fill_items: int

    @property
    def batch_items(self) -> int:
        """Items of one sample: 256, of very large rows 32."""
        return BATCH_ITEMS if self.payload.payload_bytes < LARGE_PAYLOAD_BYTES else LARGE_BATCH_ITEMS

    @property
    def flush_items(self) -> tuple[int, ...]:
        """Flush sizes that are tried."""
        fitting = tuple(items for items in FLUSH_ITEMS if items * self.payload.payload_bytes <= FLUSH_BYTES_MAX)
        return fitting or FLUSH_ITEMS[:1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One way to do an operation: what its clients are told, besides for how long."""

    api: str
    name: str
    message: Mapping[str, Any] = field(default_factory=dict)
    clients_max: int = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One timed run of all clients together."""

    items_per_s: float
    batch_p50_ms: float
    batch_p99_ms: float
    batch_max_ms: float
    client_cpu_us_per_item: float
    server_cpu_us_per_item: float
    each_server_cpu_us_per_item: tuple[float, ...]
    """Of each process that serves; ours are Redis and the shard, in this order."""
    other_cores: float


class System(Protocol):
    """One of those that are compared."""

    name: str

    def open(self, case: TableCase) -> None:
        """A fresh server with this table, empty."""
        ...

    def fill(self) -> None:
        """Put `fill_items` items into it."""
        ...

    def variants(self, operation: Operation) -> tuple[Variant, ...]:
        """The ways to do it."""
        ...

    def run(self, operation: Operation, variant: Variant, *, clients: int, seconds: float, warm_up_s: float) -> Run:
        """Do it for some seconds."""
        ...

    def close(self) -> None:
        """End the server; clients may stay for the next table."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """Medians over several runs of one variant."""

    variant: str
    items_per_s: float
    runs_items_per_s: tuple[float, ...]
    batch_p50_ms: float
    batch_p99_ms: float
    batch_max_ms: float
    client_cpu_us_per_item: float
    server_cpu_us_per_item: float
    each_server_cpu_us_per_item: tuple[float, ...]
    other_cores: float


def figure_of(variant: Variant, runs: Sequence[Run]) -> Figure:
    """The medians of `runs`; of the longest batch and of what other processes used, the largest."""

    def median(name: str, digits: int) -> float:
        return float(round(statistics.median(getattr(run, name) for run in runs), digits))

    return Figure(
        variant=variant.name,
        items_per_s=median("items_per_s", 1),
        runs_items_per_s=tuple(round(run.items_per_s, 1) for run in runs),
        batch_p50_ms=median("batch_p50_ms", 3),
        batch_p99_ms=median("batch_p99_ms", 3),
        batch_max_ms=round(max(run.batch_max_ms for run in runs), 3),
        client_cpu_us_per_item=median("client_cpu_us_per_item", 3),
        server_cpu_us_per_item=median("server_cpu_us_per_item", 3),
        each_server_cpu_us_per_item=tuple(
            float(round(statistics.median(each), 3))
            for each in zip(*(run.each_server_cpu_us_per_item for run in runs), strict=True)
        ),
        other_cores=round(max(run.other_cores for run in runs), 2),
    )


def run_clients(
    clients: Sequence[LineProcess], message: Mapping[str, Any], *, servers: Sequence[int], seconds: float, clock: Clock
) -> tuple[Run, list[dict[str, Any]]]:
    """Let `clients` do the same at the same time; what came of it, and their answers."""
    before_s, busy_before_s, began_s = [cpu_s(pid) for pid in servers], busy_s(), clock.monotonic_s()
    answers = ask_all(clients, deadline_s=seconds + ANSWER_WITHIN_S, **message)
    wall_s = clock.monotonic_s() - began_s
    each_s, busy = [cpu_s(pid) - before for pid, before in zip(servers, before_s, strict=True)], busy_s() - busy_before_s
    server_s = sum(each_s)
    client_s = sum(answer["cpu_s"] for answer in answers)
    items = max(1, sum(answer["all_items"] for answer in answers))
    batch_ms = np.concatenate([np.array(answer["batch_ms"], np.float64) for answer in answers])
    run = Run(
        items_per_s=sum(answer["count"] / answer["elapsed_s"] for answer in answers),
        batch_p50_ms=float(np.quantile(batch_ms, 0.5)),
        batch_p99_ms=float(np.quantile(batch_ms, 0.99)),
        batch_max_ms=float(batch_ms.max()),
        client_cpu_us_per_item=1e6 * client_s / items,
        server_cpu_us_per_item=1e6 * server_s / items,
        each_server_cpu_us_per_item=tuple(1e6 * one / items for one in each_s),
        other_cores=max(0.0, busy - server_s - client_s) / wall_s,
    )
    return run, answers


def cpu_s(pid: int) -> float:
    """Processor seconds that a process has used."""
    import psutil

    return float(sum(psutil.Process(pid).cpu_times()[:2]))


def busy_s() -> float:
    """Processor seconds that everything on this machine has used."""
    import psutil

    times = psutil.cpu_times()
    return float(sum(times) - times.idle - getattr(times, "iowait", 0.0) - getattr(times, "guest", 0.0))


def rss_bytes(pid: int) -> int:
    """Resident memory of a process."""
    import psutil

    return int(psutil.Process(pid).memory_info().rss)
