"""All parts of a plan, one after another; the document grows with each of them, so that an interrupted run leaves what it has.

cells (insert, sample, update) ─▶ memory ─▶ recovery ─▶ checkpoint ─▶ reconnect ─▶ index ─▶ limit ─▶ cost by table size
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from rollstream.clock import Clock
from rollstream_replay.bench.compare import Cell, Pace, measure_cell
from rollstream_replay.bench.index import index_figures
from rollstream_replay.bench.life import measure_checkpoint, measure_memory, measure_reconnect, measure_recovery
from rollstream_replay.bench.limit import practical_limit
from rollstream_replay.bench.options import Plan
from rollstream_replay.bench.ours import Durability, Ours
from rollstream_replay.bench.payloads import Payload
from rollstream_replay.bench.reverb import Reverb
from rollstream_replay.bench.system import Figure, Operation, System, TableCase
from rollstream_replay.bench.targets import judge

__all__ = ["Suite"]

TABLE_ITEMS_MAX = 1_000_000
FILL_ITEMS_MAX = 200_000
TRANSITION = Payload(payload_bytes=400)
COST_ITEMS = (10_000, 100_000, 1_000_000)
CHECKPOINT_SHARE = 5
"""A checkpoint has a fifth of the items that memory has: 200,000, as the peer's figures in our notes were made with."""


class Suite:
    """One run of a plan.

    Args:
        changed: called when the document has grown.
        say: one line of progress for people.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        folder: Path,
        clock: Clock,
        document: dict[str, Any],
        changed: Callable[[], None],
        say: Callable[[str], None],
    ) -> None:
        self._plan = plan
        self._folder = folder
        self._clock = clock
        self._document = document
        self._changed = changed
        self._say = say
        self._made = 0
        self._pace = Pace(seconds=plan.seconds, warm_up_s=plan.warm_up_s, repeats=plan.repeats)

    def run(self) -> None:
        """Measure every part."""
        reverb = self._reverb()
        try:
            if self._plan.operations:
                self._cells(reverb)
            for part in ("memory", "recovery", "checkpoint", "reconnect"):
                if part in self._plan.parts:
                    self._put(part, getattr(self, f"_{part}")(reverb))
        finally:
            if reverb is not None:
                reverb.end()
        for part in ("index", "limit", "cost"):
            if part in self._plan.parts:
                self._put(part, getattr(self, f"_{part}")())
        self._put("targets", judge(self._document))

    def _put(self, part: str, figures: Any) -> None:
        self._document[part] = figures
        if part not in ("index", "targets"):
            self._say(f"{part}: {figures}")
        self._changed()

    def _make(self, *, durability: Durability | None = None, chunk_rows: int = 1) -> Ours:
        self._made += 1
        folder = self._folder / f"ours-{self._made}"
        folder.mkdir()
        return Ours(
            folder,
            clock=self._clock,
            durability=durability or cast(Durability, self._plan.durability),
            binary=self._plan.redis_server,
            chunk_rows=chunk_rows,
        )

    def _reverb(self) -> Reverb | None:
        python = self._plan.reverb_python
        return Reverb(python, self._folder, clock=self._clock) if python is not None else None

    @contextmanager
    def _ours(self) -> Iterator[Ours]:
        ours = self._make()
        try:
            yield ours
        finally:
            ours.end()

    # --- rates -----------------------------------------------------------------------------------------------------------

    def _cells(self, reverb: Reverb | None) -> None:
        cells: list[dict[str, Any]] = self._document.setdefault("cells", [])
        with self._ours() as ours:
            systems: list[System] = [ours, *([reverb] if reverb is not None else [])]
            for payload in self._plan.payloads:
                for selector in self._plan.selectors:
                    case = self._case(payload, selector)
                    numbers = [n for n in self._plan.clients if self._plan.measures(payload, selector=selector, clients=n)]
                    if not numbers:
                        continue
                    for system in systems:
                        system.open(case)
                        system.fill()
                    for operation in self._plan.operations:
                        if operation == "update" and selector == "uniform" and len(self._plan.selectors) > 1:
                            continue  # priorities mean nothing there
                        for clients in numbers:
                            cell = measure_cell(systems, cast(Operation, operation), case, clients=clients, pace=self._pace)
                            cells.append(cell.to_json())
                            self._say(_line(cell))
                            self._changed()
                    for system in systems:
                        system.close()

    def _case(self, payload: Payload, selector: str) -> TableCase:
        room = max(64, self._plan.table_bytes // payload.payload_bytes)
        max_items = min(TABLE_ITEMS_MAX, room)
        return TableCase(payload=payload, selector=selector, max_items=max_items, fill_items=min(FILL_ITEMS_MAX, max_items))

    # --- the rest --------------------------------------------------------------------------------------------------------

    def _memory(self, reverb: Reverb | None) -> list[dict[str, Any]]:
        items = self._plan.items
        one = measure_memory(
            self._make, reverb, payload=TRANSITION, items=items, chunk_rows=self._plan.chunk_rows, clock=self._clock
        )
        five = Payload(payload_bytes=400, columns=5)
        return [
            one,
            measure_memory(self._make, reverb, payload=five, items=max(1, items // 4), chunk_rows=(1,), clock=self._clock),
        ]

    def _recovery(self, _: Reverb | None) -> dict[str, Any]:
        return measure_recovery(self._make, payload=TRANSITION, items=self._plan.items, clock=self._clock)

    def _checkpoint(self, reverb: Reverb | None) -> dict[str, Any]:
        items = max(256, self._plan.items // CHECKPOINT_SHARE)
        return measure_checkpoint(
            self._make,
            reverb,
            payload=TRANSITION,
            items=items,
            seconds=self._plan.seconds,
            folder=self._folder,
            clock=self._clock,
        )

    def _reconnect(self, reverb: Reverb | None) -> dict[str, Any]:
        return measure_reconnect(self._make, reverb, payload=TRANSITION, clock=self._clock)

    def _index(self) -> list[dict[str, Any]]:
        return index_figures(
            table_items=self._plan.index_items,
            selectors=self._plan.selectors,
            seconds=self._plan.seconds,
            clock=self._clock,
            say=self._say,
        )

    def _limit(self) -> list[dict[str, Any]]:
        """The server's limit and ours, one after the other, for each payload of random data."""
        found = []
        with self._ours() as ours:
            for payload in self._plan.payloads:
                if payload.data != "random" or payload.columns > 1:
                    continue
                self._made += 1
                limit = practical_limit(
                    payload.payload_bytes,
                    seconds=self._plan.seconds,
                    folder=self._folder / f"limit-{self._made}",
                    clock=self._clock,
                    durability=cast(Durability, self._plan.durability),
                    binary=self._plan.redis_server,
                )
                ours.open(self._case(payload, "uniform"))
                ours.fill()
                writes, reads = (self._best(ours, operation).items_per_s for operation in ("insert", "sample"))
                ours.close()
                limit |= {"inserts_per_s": writes, "samples_per_s": reads}
                limit |= {
                    "write_share": round(writes / limit["set_per_s"], 3),
                    "read_share": round(reads / limit["get_per_s"], 3),
                }
                found.append(limit)
        return found

    def _cost(self) -> list[dict[str, Any]]:
        """The whole path of ours at several sizes of a full table."""
        found = []
        with self._ours() as ours:
            for selector in self._plan.selectors:
                for items in COST_ITEMS:
                    if items > self._plan.items:
                        continue
                    ours.open(TableCase(payload=TRANSITION, selector=selector, max_items=items, fill_items=items))
                    ours.fill()
                    figures: dict[str, Any] = {"selector": selector, "items": items}
                    for operation in ("insert", "sample", "update"):
                        best = self._best(ours, operation)
                        figures[f"{operation}s_per_s"] = best.items_per_s
                        cpu_us = best.client_cpu_us_per_item + best.server_cpu_us_per_item
                        figures[f"{operation}s_per_cpu_s"] = round(1e6 / max(1e-3, cpu_us))
                    found.append(figures)
                    ours.close()
        return found

    def _best(self, ours: Ours, operation: Operation) -> Figure:
        cell = measure_cell([ours], operation, ours.case, clients=1, pace=self._pace)
        return max(cell.figures[ours.name].values(), key=lambda figure: figure.items_per_s)


def _line(cell: Cell) -> str:
    document = cell.to_json()
    systems = [
        f"{system} " + ", ".join(f"{figure.items_per_s:,.0f} ({api}, {figure.variant})" for api, figure in figures.items())
        for system, figures in cell.figures.items()
    ]
    payload = cell.case.payload
    ratio = f"; {document['ratio']:.2f} x" if "ratio" in document else ""
    return (
        f"{cell.operation}, {payload.payload_bytes:,} B {payload.data} in {payload.columns}, {cell.case.selector}, "
        f"{cell.clients} clients: {'; '.join(systems)} items/s{ratio}"
    )
