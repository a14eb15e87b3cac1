"""`rollstream up`, `down`, `scale`: a long-lived cell on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rollstream_cli.commands.options import Directory, JsonFlag, RunsDir, Token, Url

if TYPE_CHECKING:
    from rollstream_cli.daemon import UpRequest

__all__ = ["down", "scale", "up"]


def up(
    *,
    directory: Annotated[Path | None, typer.Option("--dir", metavar="DIR", help="Directory of the cell; else runs/cell.")] = None,
    actors: Annotated[int, typer.Option(min=0, help="Actor processes at the start.")] = 2,
    learners: Annotated[int, typer.Option(min=1, help="Learner processes: so many experiments run at once.")] = 1,
    replay_shards: Annotated[int, typer.Option(min=0, help="Replay shards; 0 when no algorithm has tables.")] = 1,
    host: Annotated[str, typer.Option(help="Address on which the REST API listens.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Port of the REST API; 0 takes a free one.")] = 0,
    detach: Annotated[bool, typer.Option(help="Run in the background; with --no-detach until Ctrl-C.")] = True,
    runs_dir: RunsDir = Path("runs"),
    json: JsonFlag = False,
) -> None:
    """Start a cell that stays: submit experiments to it until `rollstream down`."""
    from rollstream_cli.cell.state import is_running, read_state
    from rollstream_cli.daemon import UpRequest
    from rollstream_cli.find_cell import DEFAULT_CELL
    from rollstream_cli.run_directory import removed_if_it_never_began

    where = (directory or runs_dir / DEFAULT_CELL).absolute()
    if is_running(where):
        _print_cell(read_state(where).url, where, json=json, already=True)
        return
    request = UpRequest(
        directory=where,
        runs_dir=runs_dir.absolute(),
        actors=actors,
        learners=learners,
        replay_shards=replay_shards,
        host=host,
        port=port,
    )
    with removed_if_it_never_began(where):
        if not detach:
            _run_here(request, json=json)
            return
        from rollstream_cli.background import start_in_background

        _print_cell(start_in_background(request), where, json=json, already=False)


def down(*, directory: Directory = None, runs_dir: RunsDir = Path("runs"), json: JsonFlag = False) -> None:
    """Stop the cell of `rollstream up`: actors finish their rollout, learners save a checkpoint, then the rest."""
    from rollstream_cli.background import stop_in_background
    from rollstream_cli.find_cell import DEFAULT_CELL
    from rollstream_cli.output import result_console, write_json

    where = directory or runs_dir / DEFAULT_CELL
    stopped = stop_in_background(where)
    if json:
        write_json({"dir": str(where.absolute()), "stopped": stopped}, "-")
    else:
        message = f"stopped the cell in {where}; its data stay there" if stopped else f"no cell runs in {where}"
        result_console().print(message, markup=False, soft_wrap=True)


def scale(
    actors: Annotated[int, typer.Argument(min=0, metavar="N", help="How many actors there should be.")],
    *,
    url: Url = None,
    token: Token = None,
    directory: Directory = None,
    runs_dir: RunsDir = Path("runs"),
    json: JsonFlag = False,
) -> None:
    """Change the number of actors of a cell; those that leave finish their rollout first."""
    from rollstream_cli.find_cell import connect
    from rollstream_cli.output import result_console, write_json

    reply = connect(url=url, token=token, directory=directory, runs_dir=runs_dir).put("/v1/cell/actors", {"replicas": actors})
    if json:
        write_json(reply, "-")
    else:
        result_console().print(f"{reply['replicas']} actors wanted")


def _run_here(request: UpRequest, *, json: bool) -> None:
    from rollstream.clock import SystemClock
    from rollstream_cli.daemon import supervise
    from rollstream_cli.interrupts import catch_interrupts

    with catch_interrupts() as interrupts:
        supervise(
            request,
            interrupts=interrupts,
            clock=SystemClock(),
            tell_ready=lambda url: _print_cell(url, request.directory, json=json, already=False),
        )


def _print_cell(url: str, directory: Path, *, json: bool, already: bool) -> None:
    from rollstream_cli.output import result_console, write_json

    if json:
        write_json({"url": url, "dir": str(directory), "already_running": already}, "-")
        return
    console = result_console()
    lines = [
        f"a cell runs in {directory} already" if already else f"the cell in {directory} is ready",
        f"  {url}  (REST API; the token is in {directory / 'cell.json'})",
        "  rollstream submit --algo ppo --env CartPole-v1    start an experiment",
        "  rollstream status                                 see how it goes",
        "  rollstream scale 4                                change the number of actors",
        "  rollstream down                                   stop the cell",
    ]
    console.print("\n".join(lines), markup=False, soft_wrap=True)
