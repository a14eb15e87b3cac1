"""What the replay path is meant to reach, as data, and whether a document of figures reaches it.

Ratios are ours over theirs, in the same run. A target is judged by the worst figure that it covers; one whose figures were not measured
is neither met nor missed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["TARGETS", "Target", "judge"]

Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One target: `name` for people, where its figures are, and the bound that each of them keeps."""

    name: str
    figures: Callable[[Document], Iterator[float]]
    bound: float
    at: Literal["least", "most"] = "least"

    def judge(self, document: Document) -> dict[str, Any]:
        """The worst figure, and whether it is good enough; None where nothing was measured."""
        found = list(self.figures(document))
        worst = None if not found else min(found) if self.at == "least" else max(found)
        met = None if worst is None else worst >= self.bound if self.at == "least" else worst <= self.bound
        return {"target": self.name, f"at_{self.at}": self.bound, "measured": worst, "met": met}


def judge(document: Document) -> list[dict[str, Any]]:
    """All targets against a document."""
    return [target.judge(document) for target in TARGETS]


def _cells(document: Document, operation: str, payload_bytes: int | None = None, *, clients: int = 1) -> Iterator[Any]:
    """Cells with random data in one column; of updates those in which priorities mean something."""
    for cell in document.get("cells", ()):
        if (
            cell["operation"] == operation
            and cell["data"] == "random"
            and cell["columns"] == 1
            and cell["clients"] == clients
            and (operation != "update" or cell["selector"] == "prioritized")
            and payload_bytes in (None, cell["payload_bytes"])
        ):
            yield cell


def _ratio(operation: str, payload_bytes: int | None = None, *, api: str | None = None) -> Callable[[Document], Iterator[float]]:
    """Ours over one api of theirs, or over the fastest."""

    def figures(document: Document) -> Iterator[float]:
        for cell in _cells(document, operation, payload_bytes):
            if api is None and "ratio" in cell:
                yield cell["ratio"]
            elif api in cell.get("ratios", {}):
                yield cell["ratios"][api]

    return figures


def _share(operation: str, payload_bytes: int) -> Callable[[Document], Iterator[float]]:
    return lambda document: (cell["p50_share"] for cell in _cells(document, operation, payload_bytes) if "p50_share" in cell)


def _of_memory(document: Document) -> Iterator[float]:
    for memory in document.get("memory", ()):
        if memory["columns"] == 1 and memory["payload_bytes"] == 400:
            yield min(each["share_of_payload"] for each in memory["rollstream"])


def _of(section: str, *path: str) -> Callable[[Document], Iterator[float]]:
    """One number of a section."""

    def figures(document: Document) -> Iterator[float]:
        value: Any = document.get(section)
        for name in path:
            value = value.get(name) if isinstance(value, Mapping) else None
        if value is not None:
            yield float(value)

    return figures


def _of_index(name: str) -> Callable[[Document], Iterator[float]]:
    return lambda document: (figures[name] for figures in document.get("index", ()))


def _of_limit(name: str, payloads: Sequence[int]) -> Callable[[Document], Iterator[float]]:
    def figures(document: Document) -> Iterator[float]:
        for limit in document.get("limit", ()):
            if limit["payload_bytes"] in payloads and limit.get(name) is not None:
                yield limit[name]

    return figures


def _with_four_clients(document: Document) -> Iterator[float]:
    """The ratio with 4 clients over the ratio with one, of everything that was measured with both."""
    for cell in document.get("cells", ()):
        if cell["clients"] != 4 or "ratio" not in cell:
            continue
        same = ("operation", "payload_bytes", "data", "columns", "selector")
        for one in document["cells"]:
            if one["clients"] == 1 and "ratio" in one and all(one[name] == cell[name] for name in same):
                yield round(cell["ratio"] / one["ratio"], 3)


TARGETS = (
    Target(name="insert 400 B, of structured_writer", figures=_ratio("insert", 400, api="structured_writer"), bound=6.0),
    Target(name="insert 400 B, of trajectory_writer", figures=_ratio("insert", 400, api="trajectory_writer"), bound=20.0),
    Target(name="insert 400 B, of client.insert", figures=_ratio("insert", 400, api="client.insert"), bound=200.0),
    Target(name="insert 4 kB, of the best", figures=_ratio("insert", 4_000), bound=5.0),
    Target(name="insert 40 kB, of the best", figures=_ratio("insert", 40_000), bound=2.0),
    Target(name="insert 400 kB, of the best", figures=_ratio("insert", 400_000), bound=1.5),
    Target(name="sample 400 B, of the dataset", figures=_ratio("sample", 400), bound=5.0),
    Target(name="sample 4 kB, of the dataset", figures=_ratio("sample", 4_000), bound=2.5),
    Target(name="sample 40 kB, of the dataset", figures=_ratio("sample", 40_000), bound=1.2),
    Target(name="sample 400 kB, of the dataset", figures=_ratio("sample", 400_000), bound=1.2),
    Target(
        name="p50 of a batch of 256 x 400 B without prefetch, share", figures=_share("sample_strict", 400), bound=0.2, at="most"
    ),
    Target(name="p50 of a batch of 256 x 400 B with prefetch, share", figures=_share("sample", 400), bound=0.334, at="most"),
    Target(name="priority updates, of mutate_priorities", figures=_ratio("update"), bound=2.0),
    Target(name="stored bytes of a 400 B item, share of the payload", figures=_of_memory, bound=1.25, at="most"),
    Target(name="checkpoint save, of theirs", figures=_of("checkpoint", "ratios", "save_mb_per_s"), bound=10.0),
    Target(name="checkpoint load, of theirs", figures=_of("checkpoint", "ratios", "load_mb_per_s"), bound=10.0),
    Target(
        name="longest insert during a checkpoint, ms",
        figures=_of("checkpoint", "rollstream", "insert_max_ms"),
        bound=50.0,
        at="most",
    ),
    Target(name="reconnect after a restart, s", figures=_of("reconnect", "rollstream", "reconnect_s"), bound=1.0, at="most"),
    Target(name="ratio with 4 clients over that with one", figures=_with_four_clients, bound=0.667),
    Target(name="index alone, samples per second", figures=_of_index("samples_per_cpu_s"), bound=2e6),
    Target(name="index alone, inserts per second", figures=_of_index("inserts_per_cpu_s"), bound=1e6),
    Target(name="reads at 400 B and 4 kB, of pipelined GET", figures=_of_limit("read_share", (400, 4_000)), bound=0.5),
    Target(name="writes at 400 B and 4 kB, of pipelined SET", figures=_of_limit("write_share", (400, 4_000)), bound=0.5),
    Target(name="reads at 40 kB and 400 kB, of pipelined GET", figures=_of_limit("read_share", (40_000, 400_000)), bound=0.7),
    Target(name="writes at 40 kB and 400 kB, of pipelined SET", figures=_of_limit("write_share", (40_000, 400_000)), bound=0.7),
)
