"""Measuring one operation on all systems in turn: settings are tried first, then the best of each api runs against the best of ours.

try       ours flush 40, 256, 1000 │ reverb structured 40, 256, 1000 │ trajectory 40, 256 │ ...
measure   ours, structured, trajectory │ ours, structured, trajectory │ ours, ...        medians of the repeats
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rollstream_replay.bench.system import Figure, Operation, Run, System, TableCase, Variant, figure_of

__all__ = ["Cell", "Pace", "measure_cell"]

MUCH_SLOWER = ("client.insert", "client.sample")
"""APIs that are so much slower than the others that a shorter run tells enough."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How long and how often is measured."""

    seconds: float
    warm_up_s: float
    repeats: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """The figures of one operation on one kind of table."""

    operation: Operation
    case: TableCase
    clients: int
    figures: dict[str, dict[str, Figure]]
    """By system and api."""
    tried: dict[str, dict[str, float]]
    """Items per second of the settings that were tried, by system and `api, name`."""

    def to_json(self) -> dict[str, Any]:
        """Everything, with the ratios of our best figure to each of theirs."""
        payload = self.case.payload
        document: dict[str, Any] = {
            "operation": self.operation,
            "payload_bytes": payload.payload_bytes,
            "columns": payload.columns,
            "data": payload.data,
            "selector": self.case.selector,
            "clients": self.clients,
            "batch_items": self.case.batch_items,
            "table_items": self.case.max_items,
        }
        for system, figures in self.figures.items():
            document[system] = {
                api: {**asdict(figure), "mb_per_s": round(figure.items_per_s * payload.payload_bytes / 1e6, 2)}
                for api, figure in figures.items()
            }
        document["tried"] = self.tried
        if len(self.figures) > 1:
            document |= self._ratios()
        return document

    def _ratios(self) -> dict[str, Any]:
        """Our best figure over each of theirs: more than 1 is better. Of the median latency it is a share: less is better."""
        ours, theirs = self.figures.values()
        best = max(ours.values(), key=lambda figure: figure.items_per_s)
        ratios = {api: round(best.items_per_s / figure.items_per_s, 3) for api, figure in theirs.items()}
        fastest = min(ratios, key=lambda api: ratios[api])
        document = {"ratios": ratios, "their_best": fastest, "ratio": ratios[fastest]}
        document["cpu_ratios"] = {api: round(_cpu_us(figure) / _cpu_us(best), 3) for api, figure in theirs.items()}
        if self.operation in ("sample", "sample_strict"):  # batches of equal size on both sides
            quickest = min(theirs.values(), key=lambda figure: figure.batch_p50_ms)
            document["p50_share"] = round(best.batch_p50_ms / quickest.batch_p50_ms, 4)
        return document


def _cpu_us(figure: Figure) -> float:
    """Processor time of an item, in clients and servers; at least a little, so that a ratio is a number."""
    return max(1e-3, figure.client_cpu_us_per_item + figure.server_cpu_us_per_item)


def measure_cell(systems: Sequence[System], operation: Operation, case: TableCase, *, clients: int, pace: Pace) -> Cell:
    """Figures of all `systems`, which hold the table already."""
    tried: dict[str, dict[str, float]] = {}
    chosen: dict[str, list[Variant]] = {}
    for system in systems:
        chosen[system.name], tried[system.name] = _choose(system, operation, clients=clients, pace=pace)
    runs: dict[tuple[str, str], list[Run]] = {}
    for _ in range(pace.repeats):
        for system in systems:
            for variant in chosen[system.name]:
                run = system.run(
                    operation,
                    variant,
                    clients=clients,
                    seconds=pace.seconds / 2 if variant.api in MUCH_SLOWER else pace.seconds,
                    warm_up_s=pace.warm_up_s,
                )
                runs.setdefault((system.name, variant.api), []).append(run)
    figures = {
        system.name: {variant.api: figure_of(variant, runs[system.name, variant.api]) for variant in chosen[system.name]}
        for system in systems
    }
    return Cell(operation=operation, case=case, clients=clients, figures=figures, tried=tried)


def _choose(system: System, operation: Operation, *, clients: int, pace: Pace) -> tuple[list[Variant], dict[str, float]]:
    """The best variant of each api, by one run of each where there is a choice."""
    by_api: dict[str, list[Variant]] = {}
    for variant in system.variants(operation):
        if clients <= variant.clients_max:
            by_api.setdefault(variant.api, []).append(variant)
    best: list[Variant] = []
    tried: dict[str, float] = {}
    for variants in by_api.values():
        rates: dict[str, float] = {}
        if len(variants) > 1:
            for variant in variants:
                run = system.run(operation, variant, clients=clients, seconds=pace.seconds / 2, warm_up_s=pace.warm_up_s)
                rates[variant.name] = tried[f"{variant.api}, {variant.name}"] = round(run.items_per_s, 1)
        best.append(max(variants, key=lambda variant: rates.get(variant.name, 0.0)))
    return best, tried
