"""`rollstream replay`: look into replay tables, change them live, watch them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from rollstream_cli.commands.options import Directory, JsonFlag, RunsDir, Token, Url
from rollstream_cli.commands.replay_offline import dump, load

if TYPE_CHECKING:
    from rollstream_cli.replay import CellTables

__all__ = ["replay"]

replay = typer.Typer(help="Look into replay tables, change them, load and dump them.", no_args_is_help=True)

TableName = Annotated[
    str, typer.Argument(metavar="TABLE", help="`<experiment>.<name>`, or a part of it that only one table has.")
]


@replay.command("list")
def list_command(
    *, url: Url = None, token: Token = None, directory: Directory = None, runs_dir: RunsDir = Path("runs"), json: JsonFlag = False
) -> None:
    """List all tables: items, inserted, sampled, bytes, and who waits."""
    from rollstream_cli.output import result_console, write_json
    from rollstream_cli.replay.render import table_list
    from rollstream_cli.replay.totals import totals

    tables = _connect(url, token, directory, runs_dir)
    found = [totals(table_id, tables.look(table_id)) for table_id in tables.table_ids()]
    if json:
        write_json({"tables": [table.to_json() for table in found]}, "-")
    elif found:
        result_console().print(table_list(found))
    else:
        result_console().print("no tables; an experiment that uses replay makes its own, and `rollstream replay load` fills one")


@replay.command()
def show(
    table: TableName,
    *,
    url: Url = None,
    token: Token = None,
    directory: Directory = None,
    runs_dir: RunsDir = Path("runs"),
    json: JsonFlag = False,
) -> None:
    """Show one table: its settings, its limiter's state, who waits for what."""
    from rollstream_cli.output import result_console, write_json
    from rollstream_cli.replay.render import described
    from rollstream_cli.replay.totals import totals

    tables = _connect(url, token, directory, runs_dir)
    table_id = tables.resolve(table)
    says, limits = tables.look(table_id), tables.look(table_id, "/limiter")
    found = totals(table_id, says)
    if json:
        parts = {"parts": [_plain(one) for one in says], "limiter": [_plain(one) for one in limits]}
        write_json({**found.to_json(), **parts}, "-")
    else:
        result_console().print(described(found, says, limits), soft_wrap=True)


@replay.command()
def items(
    table: TableName,
    *,
    order: Annotated[
        Literal["priority", "lowest", "newest", "oldest"],
        typer.Option(help="Which come first: highest or lowest priority, or by age."),
    ] = "priority",
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many, of each shard.")] = 20,
    url: Url = None,
    token: Token = None,
    directory: Directory = None,
    runs_dir: RunsDir = Path("runs"),
    json: JsonFlag = False,
) -> None:
    """List items of a table; with --json also their rows, decoded."""
    from rollstream_cli.output import result_console, write_json
    from rollstream_cli.replay.render import item_list

    tables = _connect(url, token, directory, runs_dir)
    says = tables.look(tables.resolve(table), "/items", order=order, limit=limit)
    found = [entry for one in says if one.info is not None for entry in one.info["items"]]
    if order in ("priority", "lowest"):
        found.sort(key=lambda entry: float(entry["priority"]), reverse=order == "priority")
    if json:
        write_json({"items": found, "problems": [one.problem for one in says if one.info is None]}, "-")
        return
    console = result_console()
    console.print(item_list(found))
    for one in says:
        if one.info is None:
            console.print(f"shard {one.shard}: {one.problem}", markup=False, soft_wrap=True)


@replay.command()
def item(
    table: TableName,
    key: Annotated[int, typer.Argument(metavar="KEY", min=0, help="Key of the item, as writers and samples give it.")],
    *,
    url: Url = None,
    token: Token = None,
    directory: Directory = None,
    runs_dir: RunsDir = Path("runs"),
    json: JsonFlag = False,
) -> None:
    """Show one item with its rows, decoded."""
    from rollstream_cli.output import result_console, write_json
    from rollstream_cli.replay import render

    tables = _connect(url, token, directory, runs_dir)
    found = tables.look_at_item(tables.resolve(table), key)
    if json:
        write_json(found, "-")
    else:
        result_console().print(render.item(found))


@replay.command()
def histogram(
    table: TableName,
    *,
    bins: Annotated[int, typer.Option(min=1, max=200, help="Bars.")] = 20,
    url: Url = None,
    token: Token = None,
    directory: Directory = None,
    runs_dir: RunsDir = Path("runs"),
    json: JsonFlag = False,
) -> None:
    """Show how the priorities of a table are spread."""
    from rollstream_cli.output import result_console, write_json
    from rollstream_cli.replay import render

    tables = _connect(url, token, directory, runs_dir)
    says = tables.look(tables.resolve(table), "/priorities/histogram", bins=bins)
    if json:
        write_json({"shards": [_plain(one) for one in says]}, "-")
        return
    for one in says:
        result_console().print(render.histogram(one, alone=len(says) == 1))


@replay.command("set")
def set_command(
    table: TableName,
    changes: Annotated[
        list[str], typer.Argument(metavar="KEY=VALUE", help="A setting, e.g. limiter.samples_per_insert=4 or max_items=1000.")
    ],
    *,
    url: Url = None,
    token: Token = None,
    directory: Directory = None,
    runs_dir: RunsDir = Path("runs"),
    json: JsonFlag = False,
) -> None:
    """Change settings of a living table, on all its shards."""
    from rollstream_cli.output import result_console, write_json
    from rollstream_cli.replay.render import described
    from rollstream_cli.replay.settings import changed_fields
    from rollstream_cli.replay.totals import totals

    tables = _connect(url, token, directory, runs_dir)
    table_id = tables.resolve(table)
    fields = changed_fields(changes, present=_spec(tables, table_id))
    tables.change(table_id, "PATCH", content=fields)
    says = tables.look(table_id)
    if json:
        write_json({"changed": fields, **totals(table_id, says).to_json()}, "-")
    else:
        result_console().print(described(totals(table_id, says), says), soft_wrap=True)


@replay.command()
def reset(
    table: TableName,
    *,
    url: Url = None,
    token: Token = None,
    directory: Directory = None,
    runs_dir: RunsDir = Path("runs"),
    json: JsonFlag = False,
) -> None:
    """Remove all items of a table; the table, its settings and its writers stay."""
    from rollstream_cli.output import result_console, write_json

    tables = _connect(url, token, directory, runs_dir)
    table_id = tables.resolve(table)
    says = tables.change(table_id, "POST", "/reset")
    if json:
        write_json({"id": table_id, "shards": [_plain(one) for one in says]}, "-")
    else:
        result_console().print(f"{table_id}  empty", markup=False)


@replay.command()
def delete(
    table: TableName,
    keys: Annotated[list[int], typer.Argument(metavar="KEY...", min=0, help="Keys of the items.")],
    *,
    url: Url = None,
    token: Token = None,
    directory: Directory = None,
    runs_dir: RunsDir = Path("runs"),
    json: JsonFlag = False,
) -> None:
    """Remove items by their keys; keys that are not there are told."""
    from rollstream_cli.output import result_console, write_json

    tables = _connect(url, token, directory, runs_dir)
    table_id = tables.resolve(table)
    says = tables.change(table_id, "POST", "/items/delete", content={"keys": keys})
    deleted = sum(int((one.info or {}).get("deleted", 0)) for one in says)
    if json:
        write_json({"id": table_id, "deleted": deleted, "unknown": len(set(keys)) - deleted}, "-")
    else:
        unknown = len(set(keys)) - deleted
        result_console().print(f"{table_id}  deleted {deleted}" + (f", {unknown} not there" if unknown else ""), markup=False)


@replay.command()
def top(
    names: Annotated[list[str] | None, typer.Argument(metavar="TABLE", help="Tables to watch; without it all.")] = None,
    *,
    every: Annotated[float, typer.Option(min=0.2, metavar="SECONDS", help="Seconds between two looks.")] = 1.0,
    once: Annotated[bool, typer.Option("--once", help="Look for one interval, print it, and end.")] = False,
    url: Url = None,
    token: Token = None,
    directory: Directory = None,
    runs_dir: RunsDir = Path("runs"),
    json: JsonFlag = False,
) -> None:
    """Watch tables live: items, rates in and out, ratio, bytes, and who waits. q or Ctrl-C ends; --json prints one look."""
    from rollstream.clock import SystemClock
    from rollstream_cli.output import result_console, write_json
    from rollstream_cli.replay.top import Top, keys_of_terminal

    tables, clock = _connect(url, token, directory, runs_dir), SystemClock()
    watched = Top(tables, names=[tables.resolve(name) for name in names or ()], clock=clock)
    console = result_console()
    if not (once or json):
        try:
            with keys_of_terminal(clock) as keys:
                watched.run(console, every_s=every, keys=keys)
        except KeyboardInterrupt:
            pass  # it is how one leaves
        return
    watched.look()
    clock.sleep(every)
    watched.look()
    if json:
        write_json(watched.to_json(), "-")
    else:
        console.print(watched.shown())


def _connect(url: str | None, token: str | None, directory: Path | None, runs_dir: Path) -> CellTables:
    from rollstream_cli.replay import connect_tables

    return connect_tables(url=url, token=token, directory=directory, runs_dir=runs_dir)


def _spec(tables: CellTables, table_id: str) -> dict[str, Any]:
    from rollstream_cli.errors import RestError

    for one in tables.look(table_id):
        if one.info is not None:
            spec: dict[str, Any] = one.info["spec"]
            return spec
    raise RestError(f"no shard of table {table_id} answers, so its settings cannot be changed")


def _plain(says: Any) -> dict[str, Any]:
    return {"shard": says.shard, "member": says.member, "info": says.info, "problem": says.problem}


replay.command()(load)
replay.command()(dump)
