"""Tables, items and histograms as a person reads them in a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from rollstream_cli.replay.tables import ShardSays
from rollstream_cli.replay.totals import TableTotals, rates

__all__ = ["described", "frame", "histogram", "item", "item_list", "size", "table_list"]

BAR_WIDTH = 40
NUMBERS_FIRST = ("items", "max_items", "inserted", "sampled", "samples_per_insert", "bytes", "bytes_at_full")


def table_list(tables: Sequence[TableTotals]) -> RenderableType:
    """One line for each table."""
    listed = _grid("table", "items", "of", "inserted", "sampled", "ratio", "bytes", "shards")
    for table in tables:
        counts = table.counts
        listed.add_row(
            table.table_id,
            f"{counts['items']:,}",
            f"{table.max_items:,}",
            f"{counts['inserted']:,}",
            f"{counts['sampled']:,}",
            f"{table.ratio:.2f}",
            size(counts["bytes"]),
            str(table.shards),
        )
    return Group(listed, *_notes(tables))


def frame(tables: Sequence[TableTotals], before: Mapping[str, TableTotals], *, over_s: float) -> RenderableType:
    """What `top` shows: rates since the look before, and who waits."""
    shown = _grid("table", "items", "full", "in/s", "out/s", "ratio", "unread", "bytes", "shards")
    for table in tables:
        counts = table.counts
        inserted_per_s, sampled_per_s = rates(table, before.get(table.table_id), over_s=over_s)
        full = f"{counts['items'] / table.max_items:.0%}" if table.max_items else "-"
        shown.add_row(
            table.table_id,
            f"{counts['items']:,}",
            full,
            f"{inserted_per_s:,.0f}",
            f"{sampled_per_s:,.0f}",
            f"{table.ratio:.2f}",
            f"{counts['entries_waiting']:,}",
            size(counts["bytes"]),
            str(table.shards),
        )
    return Group(shown, *_notes(tables))


def described(table: TableTotals, says: Sequence[ShardSays], limits: Sequence[ShardSays] = ()) -> RenderableType:
    """One table: its numbers, its settings, what each shard says where there are several, its limiter, and who waits.

    Args:
        limits: what the shards say about their limiters.
    """
    lines = [table.table_id, *_settings(says)]
    numbers = {**table.to_json(), "samples_per_insert": f"{table.ratio:.3f}"}
    numbers |= {name: f"{numbers[name]:,} ({size(int(numbers[name]))})" for name in ("bytes", "bytes_at_full")}
    rest = [name for name in table.counts if name not in NUMBERS_FIRST]
    lines += [f"  {name.replace('_', ' ')}: {_text(numbers[name])}" for name in (*NUMBERS_FIRST, *rest)]
    if len(says) > 1:
        for one in says:
            info = one.info or {}
            told = f"{info.get('items', 0):,} items, inserted {info.get('inserted', 0):,}, sampled {info.get('sampled', 0):,}"
            lines.append(f"  shard {one.shard} ({one.member or 'nobody'}): {one.problem or told}")
    for one in limits:
        lines += [f"  {'' if len(limits) == 1 else f'shard {one.shard}: '}{line}" for line in _limiter(one.info or {})]
    waits = [f"  {wait}" for wait in (*table.waits, *table.problems)] or ["  nobody waits"]
    return Text("\n".join([*lines, *waits]))


def item_list(items: Sequence[Mapping[str, Any]]) -> RenderableType:
    """Items without their rows."""
    shown = _grid("key", "priority", "sampled", "writer", "env", "first row", "rows")
    for entry in items:
        rows = entry.get("rows")
        shown.add_row(
            str(entry["key"]),
            _text(entry["priority"]),
            str(entry["times_sampled"]),
            str(entry["writer"]),
            str(entry["environment"]),
            str(entry["start_row"]),
            "gone" if rows is None else str(len(rows)),
        )
    return shown if items else Text("no items")


def item(entry: Mapping[str, Any]) -> RenderableType:
    """One item with its rows, one line each."""
    rows = entry.get("rows")
    told = {name: str(value) if isinstance(value, int) else _text(value) for name, value in entry.items() if name != "rows"}
    facts = Text("\n".join(f"{name.replace('_', ' ')}: {value}" for name, value in told.items()))
    if not rows:
        return Group(facts, Text("its rows are gone from Redis"))
    shown = _grid("row", *rows[0])
    for number, row in enumerate(rows):
        shown.add_row(str(number), *(_text(value) for value in row.values()))
    return Group(facts, shown)


def histogram(says: ShardSays, *, alone: bool) -> RenderableType:
    """Bars of the priorities of one shard."""
    info = says.info
    heading = [] if alone else [Text(f"shard {says.shard}" + (f": {says.problem}" if info is None else ""))]
    if info is None:
        return Group(*(heading or [Text(says.problem)]))
    counts, edges = [int(count) for count in info["counts"]], [float(edge) for edge in info["edges"]]
    most = max([*counts, int(info.get("zeros") or 0), 1])
    lines = [_bar("0", int(info["zeros"]), most)] if info.get("zeros") else []
    lines += [_bar(f"{low:.4g} .. {high:.4g}", count, most) for (low, high), count in zip(pairwise(edges), counts, strict=True)]
    told = {name: info.get(name) for name in ("items", "min", "max", "mean")}
    summary = ", ".join(f"{name} {_text(value)}" for name, value in told.items() if value is not None)
    return Group(*heading, Text("\n".join(lines) or "no items"), Text(summary))


def size(count_bytes: float) -> str:
    """`1.5 GB`: in powers of 1000."""
    for unit in ("B", "kB", "MB", "GB"):
        if abs(count_bytes) < 1000 or unit == "GB":
            return f"{count_bytes:.0f} B" if unit == "B" else f"{count_bytes:.1f} {unit}"
        count_bytes /= 1000
    raise AssertionError("the last unit returns")


def _bar(label: str, count: int, most: int) -> str:
    return f"{label:>24}  {'█' * max(1 if count else 0, round(BAR_WIDTH * count / most)):<{BAR_WIDTH}} {count:,}"


def _limiter(info: Mapping[str, Any]) -> list[str]:
    """How the limiter stands, and each who waits for it."""
    if "diff" not in info:
        return []
    low, high = (_text(info[name]) if info[name] is not None else "unbounded" for name in ("min_diff", "max_diff"))
    may = {True: "may go on", False: "must wait"}
    told = [
        f"ahead by {_text(info['diff'])} samples (from {low} to {high}); inserts {may[info['can_insert_one']]}, samples of "
        f"{info['batch_items']} {may[info['can_sample_batch']]}"
    ]
    told += [f"writer {each['writer']} has been waiting {each['waited_s']:.1f} s" for each in info.get("writers_waiting") or ()]
    told += [
        f"a sampler of {each['batch_items']} items has been waiting {each['waited_s']:.1f} of {each['deadline_s']:.0f} s"
        for each in info.get("samplers_waiting") or ()
    ]
    return told


def _settings(says: Iterable[ShardSays]) -> list[str]:
    spec = next((one.info["spec"] for one in says if one.info is not None and one.info.get("spec")), None)
    if spec is None:
        return []
    columns = ", ".join(f"{name} {dtype}{list(shape)}" for name, dtype, shape in spec["rows"])
    return [
        *(f"  {name}: {_options(spec[name])}" for name in ("sampler", "remover", "limiter") if name in spec),
        f"  columns: {columns}",
    ]


def _options(value: Mapping[str, Any]) -> str:
    rest = ", ".join(f"{name} {_text(entry)}" for name, entry in value.items() if name != "kind" and entry is not None)
    return f"{value.get('kind', '')} ({rest})" if rest else str(value.get("kind", ""))


def _notes(tables: Iterable[TableTotals]) -> list[RenderableType]:
    return [Text(f"{table.table_id}: {note}") for table in tables for note in (*table.waits, *table.problems)]


def _grid(*columns: str) -> Table:
    grid = Table(box=None, padding=(0, 2, 0, 0))
    for number, name in enumerate(columns):
        grid.add_column(name, justify="left" if number == 0 else "right", overflow="fold")
    return grid


def _text(value: object) -> str:
    if isinstance(value, bool) or value is None:
        return "-" if value is None else str(value).lower()
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list):
        return "[" + " ".join(_text(entry) for entry in value) + "]"
    if isinstance(value, dict) and "first" in value:
        return f"[{' '.join(_text(entry) for entry in value['first'])} ...] {value.get('shape', '')}"
    return str(value)
