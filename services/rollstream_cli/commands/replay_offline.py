"""`rollstream replay load` and `dump`: recorded data into a table of a cell, and a table into a file."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rollstream_cli.commands.options import Directory, JsonFlag, RunsDir

if TYPE_CHECKING:
    from rollstream.replay.offline import LoadResult

__all__ = ["dump", "load"]

RedisUrl = Annotated[
    str | None,
    typer.Option(
        "--redis-url",
        envvar="ROLLSTREAM_REDIS_URL",
        metavar="URL",
        help="Redis of the cell, to which rows go directly; else that of a cell that runs here.",
    ),
]
TableOption = Annotated[
    str, typer.Option("--table", metavar="TABLE", help="Table of the cell: `<experiment>.<name>`, or a name that only one has.")
]


def load(
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="NumPy archive (.npz), Minari dataset (id or folder), or a file of `dump`.")
    ],
    table: TableOption,
    *,
    items: Annotated[
        str,
        typer.Option(
            metavar="RULE",
            help="How rows become items: transition, n_step:5, sequence:80,40, episode:1000 or each_row; else the first, or the last "
            "for data without episodes.",
        ),
    ] = "",
    create: Annotated[bool, typer.Option("--create", help="Make the table, with the columns of the data.")] = False,
    sampler: Annotated[str | None, typer.Option(help="With --create: uniform, prioritized, fifo, ...")] = None,
    remover: Annotated[str | None, typer.Option(help="With --create: what leaves a full table first, e.g. fifo.")] = None,
    limiter: Annotated[str | None, typer.Option(help="With --create: min_size, sample_to_insert_ratio, ...")] = None,
    max_items: Annotated[int | None, typer.Option(min=1, help="With --create: items held at most; else all of the data.")] = None,
    shards: Annotated[int, typer.Option(min=1, max=256, help="With --create: replay shards that share it.")] = 1,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="With --create: a setting, e.g. sampler.exponent=0.7; may be repeated."),
    ] = None,
    rename: Annotated[
        list[str] | None,
        typer.Option(metavar="ARRAY=COLUMN", help="Store an array of an archive under another name; may be repeated."),
    ] = None,
    drop: Annotated[
        list[str] | None, typer.Option(metavar="ARRAY", help="Leave an array of an archive out; may be repeated.")
    ] = None,
    float32: Annotated[bool, typer.Option("--float32", help="Store columns of float64 as float32.")] = False,
    deadline: Annotated[
        float, typer.Option(min=0.1, metavar="SECONDS", help="How long the table's limiter may hold a flush back.")
    ] = 60.0,
    redis_url: RedisUrl = None,
    directory: Directory = None,
    runs_dir: RunsDir = Path("runs"),
    json: JsonFlag = False,
) -> None:
    """Load recorded data into a table, and say how fast it went."""
    from rollstream.errors import ConfigError
    from rollstream_cli.output import result_console, write_json
    from rollstream_cli.replay.offline import Creation, columns_of, create_table, load_rows, read_source, require_table
    from rollstream_cli.replay.redis_of_cell import open_redis
    from rollstream_cli.replay.snapshot_files import is_snapshot, load_snapshot

    kinds = {"sampler": sampler, "remover": remover, "limiter": limiter}
    changes = [f"{name}={kind}" for name, kind in kinds.items() if kind is not None] + list(settings or ())
    if (changes or max_items or shards > 1) and not create:
        raise ConfigError("settings of the table go with --create; `rollstream replay set` changes those of a living one")
    if is_snapshot(Path(source)):
        sizes = [f"{name}={value}" for name, value in (("max_items", max_items), ("shards", shards)) if value not in (None, 1)]
        with open_redis(redis_url=redis_url, directory=directory, runs_dir=runs_dir) as redis:
            restored = load_snapshot(redis, Path(source), name=table, create=create, changes=[*changes, *sizes])
        if json:
            write_json(restored.to_json(), "-")
        else:
            result_console().print(restored.told, markup=False, soft_wrap=True)
        return
    renames = dict(_pairs(rename or []))
    with open_redis(redis_url=redis_url, directory=directory, runs_dir=runs_dir) as redis:
        keep = () if create else columns_of(redis, table)
        data = read_source(source, rename=renames, drop=drop or [], keep=keep, float32=float32)
        if create:
            creation = Creation(changes=changes, max_items=max_items, shards=shards)
            table_id = create_table(redis, table, data=data, creation=creation)
        else:
            table_id = require_table(redis, table)
        with _progress(len(data.rows)) as report:
            result = load_rows(redis, table_id, data=data, items=items, deadline_s=deadline, report=report)
    if json:
        write_json({"id": table_id, **_numbers(result)}, "-")
    else:
        result_console().print(_told(table_id, result), markup=False, soft_wrap=True)


def dump(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="`<experiment>.<name>`, or a name that only one experiment has.")],
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="`.npz`: an archive that NumPy reads; anything else: a snapshot that `load` restores exactly."
        ),
    ],
    *,
    redis_url: RedisUrl = None,
    directory: Directory = None,
    runs_dir: RunsDir = Path("runs"),
    json: JsonFlag = False,
) -> None:
    """Write a table's rows and items to a file."""
    from rollstream_cli.output import result_console, write_json
    from rollstream_cli.replay.offline import require_table
    from rollstream_cli.replay.redis_of_cell import open_redis
    from rollstream_cli.replay.snapshot_files import dump_file

    with open_redis(redis_url=redis_url, directory=directory, runs_dir=runs_dir) as redis:
        written = dump_file(redis, require_table(redis, table), file)
    if json:
        write_json(written.to_json(), "-")
    else:
        result_console().print(written.told, markup=False, soft_wrap=True)


def _pairs(renames: list[str]) -> list[tuple[str, str]]:
    from rollstream.errors import ConfigError

    pairs = [(old, new) for old, equals, new in (text.partition("=") for text in renames) if equals and old and new]
    if len(pairs) < len(renames):
        raise ConfigError(f"--rename takes ARRAY=COLUMN, such as state=observation, got {renames}")
    return pairs


@contextlib.contextmanager
def _progress(rows: int) -> Iterator[Callable[[int], None]]:
    """A bar on a terminal; nothing elsewhere."""
    from rich.progress import Progress

    from rollstream_cli.output import error_console

    console = error_console()
    if not console.is_terminal:
        yield lambda written: None
        return
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task("rows", total=rows)
        yield lambda written: bar.update(task, completed=written)


def _numbers(result: LoadResult) -> dict[str, float]:
    return {
        "rows": result.rows,
        "items": result.items,
        "episodes": result.episodes,
        "bytes": result.bytes,
        "took_s": result.took_s,
        "items_per_s": result.items_per_s,
        "mb_per_s": result.mb_per_s,
    }


def _told(table_id: str, result: LoadResult) -> str:
    return (
        f"{table_id}  {result.items:,} items of {result.rows:,} rows in {result.took_s:.2f} s: {result.items_per_s:,.0f} items/s, "
        f"{result.mb_per_s:,.0f} MB/s"
    )
