"""The figures as Markdown tables, to be pasted into `docs/bench/reverb.md`, and as one plot of cost by table size."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = ["draw_cost", "markdown"]

Document = Mapping[str, Any]
OURS = "rollstream"
THEIRS = "reverb"
TITLES = {
    "insert": "Inserts",
    "sample": "Samples, asked ahead",
    "sample_strict": "Samples, one batch at a time",
    "update": "Priority updates",
}


def markdown(document: Document) -> str:
    """All tables of a document."""
    machine = document["machine"]
    parts = [
        f"Measured on {document['date']}: {machine['cores']} cores ({machine['processor']}), {machine['memory_gib']} GiB, "
        f"{machine['system']}, Python {machine['python']}, server {machine['server']}, durability `{document['plan']['durability']}`"
        + (f", dm-reverb {document['peer']['dm_reverb']}" if document.get("peer") else "")
        + f"; {document['plan']['seconds']:g} s a run, medians of {document['plan']['repeats']}."
    ]
    for operation, title in TITLES.items():
        cells = [cell for cell in document.get("cells", ()) if cell["operation"] == operation]
        if cells:
            parts.append(f"### {title}\n\n{_rates(cells)}")
    parts += [_memory(document), _lives(document), _index(document), _limit(document), _targets(document)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def _number(value: float | None, digits: int = 0) -> str:
    return "" if value is None else f"{value:,.{digits}f}"


def _rates(cells: Sequence[Document]) -> str:
    compared = any(THEIRS in cell for cell in cells)
    header = ["item", "selector", "clients", "ours: items/s (MB/s)", "p50 / p99 ms", "µs/item client + server", "setting"]
    header += ["theirs: items/s, setting", "ratio", "of processor time"] if compared else []
    rows = []
    for cell in cells:
        ours = max(cell[OURS].values(), key=lambda figure: figure["items_per_s"])
        row = [
            _kind(cell),
            cell["selector"],
            str(cell["clients"]),
            f"{_number(ours['items_per_s'])} ({_number(ours['mb_per_s'])})",
            f"{ours['batch_p50_ms']:.2f} / {ours['batch_p99_ms']:.2f}",
            f"{ours['client_cpu_us_per_item']:.2f} + {ours['server_cpu_us_per_item']:.2f}",
            ours["variant"],
        ]
        if THEIRS in cell:
            theirs = cell[THEIRS]
            row.append("<br>".join(f"{api}: {_number(theirs[api]['items_per_s'])}, {theirs[api]['variant']}" for api in theirs))
            row += ["<br>".join(f"{ratio:.2f}" for ratio in cell[name].values()) for name in ("ratios", "cpu_ratios")]
        elif compared:
            row += ["", "", ""]
        rows.append(row)
    return _table(header, rows)


def _kind(cell: Document) -> str:
    size = f"{cell['payload_bytes']:,} B"
    columns = f" in {cell['columns']} columns" if cell["columns"] > 1 else ""
    return f"{size}{columns}, {cell['data']}"


def _memory(document: Document) -> str:
    rows = []
    for memory in document.get("memory", ()):
        for ours in memory[OURS]:
            theirs = memory.get(THEIRS, {})
            rows.append(
                [
                    f"{memory['items']:,} of {memory['payload_bytes']} B in {memory['columns']}",
                    str(ours["chunk_rows"]),
                    f"{ours['redis_bytes_per_item']} + {ours['shard_bytes_per_item']} = {ours['bytes_per_item']}",
                    f"{ours['share_of_payload']:.2f}",
                    str(theirs.get("bytes_per_item", "")),
                ]
            )
    header = ["items, bytes, columns", "rows a key", "bytes an item: Redis + shard", "of the payload", "theirs, bytes an item"]
    return f"### Memory\n\n{_table(header, rows)}" if rows else ""


def _lives(document: Document) -> str:
    rows = []
    recovery = document.get("recovery")
    if recovery:
        rows.append(["shard ended, until it samples again, s", f"{recovery['restart_s']}", "", f"{recovery['items']:,} items"])
        rows.append(
            [
                "shard killed, until it samples again, s",
                f"{recovery['kill_s']}",
                "",
                f"lease of {recovery['lease_ttl_s']:g} s included",
            ]
        )
    checkpoint = document.get("checkpoint")
    if checkpoint:
        for name, words in (
            ("save_mb_per_s", "checkpoint saved, MB/s"),
            ("load_mb_per_s", "checkpoint loaded, MB/s"),
            ("insert_max_ms", "longest insert meanwhile, ms"),
            ("quiet_insert_max_ms", "longest insert without a checkpoint, ms"),
        ):
            theirs = checkpoint.get(THEIRS, {}).get(name, "")
            rows.append([words, f"{checkpoint[OURS][name]:.1f}", str(theirs), f"{checkpoint['items']:,} items"])
    reconnect = document.get("reconnect")
    if reconnect:
        theirs = reconnect.get(THEIRS, {}).get("reconnect_s", "")
        rows.append(["server restarted, until an item is in, s", f"{reconnect[OURS]['reconnect_s']:.2f}", str(theirs), ""])
    return f"### Faults and checkpoints\n\n{_table(['what', 'ours', 'theirs', ''], rows)}" if rows else ""


def _index(document: Document) -> str:
    rows = [
        [figures["selector"], f"{figures['items']:,}", *(_number(figures[name]) for name in _INDEX_RATES)]
        for figures in document.get("index", ())
    ]
    header = ["selector", "items", "inserts/s", "samples/s", "updates/s"]
    return f"### Index alone\n\nPer second of processor time, batches of 256.\n\n{_table(header, rows)}" if rows else ""


_INDEX_RATES = ("inserts_per_cpu_s", "samples_per_cpu_s", "updates_per_cpu_s")


def _limit(document: Document) -> str:
    rows = [
        [
            f"{limit['payload_bytes']:,}",
            limit["program"],
            _number(limit["set_per_s"]),
            _share(limit.get("write_share")),
            _number(limit["get_per_s"]),
            _share(limit.get("read_share")),
            _number(limit.get("set_per_s_4_connections")),
            _number(limit.get("get_per_s_4_connections")),
        ]
        for limit in document.get("limit", ())
    ]
    header = ["bytes", "program", "SET/s", "our writes", "GET/s", "our reads", "SET/s, 4 connections", "GET/s, 4 connections"]
    return f"### Practical limit\n\n{_table(header, rows)}" if rows else ""


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.0%}"


def _targets(document: Document) -> str:
    rows = []
    for target in document.get("targets", ()):
        bound = f"≥ {target['at_least']:g}" if "at_least" in target else f"≤ {target['at_most']:g}"
        if target["met"] is not None:
            rows.append([target["target"], bound, f"{target['measured']:,.3g}", "yes" if target["met"] else "**no**"])
    return f"### Targets\n\n{_table(['target', 'bound', 'measured', 'met'], rows)}" if rows else ""


def draw_cost(document: Document, file: Path) -> None:
    """Processor time of an item by table size, of the index alone and of the whole path (client, shard and server)."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(11, 4.2), sharey=True, layout="constrained")
    for axis, section, title in ((axes[0], "index", "index alone"), (axes[1], "cost", "whole path")):
        found = document.get(section, ())
        for selector in dict.fromkeys(each["selector"] for each in found):
            mine = [each for each in found if each["selector"] == selector]
            for name, marker in (("inserts", "o"), ("samples", "s"), ("updates", "^")):
                points = [(each["items"], 1e6 / each[f"{name}_per_cpu_s"]) for each in mine]
                if points:
                    label = f"{name}, {selector}"
                    axis.plot(
                        *zip(*points, strict=True), marker=marker, label=label, linestyle="--" if selector == "uniform" else "-"
                    )
        axis.set_xscale("log")
        axis.set_title(title)
        axis.set_xlabel("items in the table")
        axis.grid(visible=True, which="both", alpha=0.25)
        if found:
            axis.legend(fontsize=8)
    axes[0].set_ylabel("processor time, microseconds per item")
    axes[0].set_yscale("log")
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=110)
    pyplot.close(figure)
