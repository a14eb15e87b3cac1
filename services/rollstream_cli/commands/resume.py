"""`rollstream resume`: continue a run of `train` on this machine, or an experiment of a cell."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rollstream_cli.commands.options import Directory, JsonTo, RunsDir, Token, Url

if TYPE_CHECKING:
    from rollstream_cli.document import SpecOptions
    from rollstream_cli.rest import Rest
    from rollstream_cli.run_directory import Run

__all__ = ["resume"]


def resume(
    run: Annotated[str, typer.Argument(metavar="RUN_DIR|ID", help="Folder or id of a run, or an experiment of a cell.")],
    *,
    settings: Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A setting that changes.")] = None,
    stop_return: Annotated[float | None, typer.Option(help="Stop at this mean return of the last episodes.")] = None,
    stop_steps: Annotated[int | None, typer.Option(help="Stop after so many environment steps, earlier ones included.")] = None,
    json_to: JsonTo = None,
    url: Url = None,
    token: Token = None,
    directory: Directory = None,
    runs_dir: RunsDir = Path("runs"),
) -> None:
    """Continue what was paused, stopped, killed or has finished, from its newest checkpoint.

    A run of `train` starts its cell again and is followed to its end; an experiment of a cell goes on there.
    """
    from rollstream_cli.cell.state import is_running
    from rollstream_cli.document import SpecOptions
    from rollstream_cli.find_cell import connect
    from rollstream_cli.json_target import check_json_target
    from rollstream_cli.run_directory import find_run

    check_json_target(json_to)
    changes = SpecOptions(stop_return=stop_return, stop_steps=stop_steps, overrides=settings or ())
    found = find_run(run, runs_dir=runs_dir) if url is None and directory is None else None
    if found is not None and not is_running(found.cell_dir):
        _continue_run(found, changes, json_to=json_to)
        return
    if found is not None:
        directory, run = found.cell_dir, found.experiment
    rest = connect(url=url, token=token, directory=directory, runs_dir=runs_dir)
    _continue_in_cell(rest, run, changes, json_to=json_to)


def _continue_run(found: Run, changes: SpecOptions, *, json_to: str | None) -> None:
    from dataclasses import replace

    from rollstream_cli.commands.train import train_in_cell
    from rollstream_cli.document import build_spec

    spec = build_spec(replace(changes, from_checkpoint=found.checkpoints()), base=found.spec)
    found.check_that_it_can_go_on(spec)
    train_in_cell(
        spec,
        run_id=found.experiment,
        cell_dir=found.cell_dir,
        runs_dir=found.directory.absolute().parent,
        json_to=json_to,
        resumed=True,
    )


def _continue_in_cell(rest: Rest, experiment: str, changes: SpecOptions, *, json_to: str | None) -> None:
    """Let an open experiment go on; submit one that has ended again, from its checkpoint."""
    from dataclasses import replace

    from rollstream.config import FINAL_PHASES
    from rollstream.errors import ConfigError
    from rollstream_cli.document import build_spec
    from rollstream_cli.output import result_console, write_json
    from rollstream_cli.run_directory import new_run_id

    view: dict[str, Any] = rest.get(f"/v1/experiments/{experiment}")
    if view["phase"] not in FINAL_PHASES:
        if changes.overrides or changes.stop_return is not None or changes.stop_steps is not None:
            raise ConfigError(
                f"{experiment} is {view['phase']}: its settings cannot change; stop it first, then resume it with them"
            )
        reply = rest.post(f"/v1/experiments/{experiment}/resume")
        message = f"{experiment}  goes on"
    else:
        checkpoint = view["summary"].get("checkpoint")
        if not checkpoint:
            raise ConfigError(f"{experiment} has ended without a checkpoint; submit it again to start afresh")
        spec = build_spec(replace(changes, from_checkpoint=str(checkpoint)), base=view["spec"])
        reply = rest.post("/v1/experiments", spec.model_dump(mode="json"), id=new_run_id(spec.name))
        message = f"{reply['id']}  goes on from {checkpoint}"
    if json_to is not None:
        write_json(reply, json_to)
    if json_to != "-":
        result_console().print(message, markup=False, soft_wrap=True)
