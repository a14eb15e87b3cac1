"""`rollstream submit`, `stop`, `pause`: experiments of a cell, wherever it runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rollstream_cli.commands.options import Directory, JsonFlag, RunsDir, Token, Url

if TYPE_CHECKING:
    from rollstream_cli.rest import Rest

__all__ = ["pause", "stop", "submit"]

STOP_WITHIN_S = 60.0


def submit(
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="Experiment spec (YAML or JSON); options win over it.")
    ] = None,
    *,
    algorithm: Annotated[str | None, typer.Option("--algo", metavar="ALGO", help="ppo, dqn, ...")] = None,
    env: Annotated[str | None, typer.Option(help="Gymnasium id, envpool:Name, or module:callable.")] = None,
    actors: Annotated[int | None, typer.Option(help="Actor processes that it asks for.")] = None,
    envs_per_actor: Annotated[int | None, typer.Option(help="Environments that one actor steps as a batch.")] = None,
    seed: Annotated[int | None, typer.Option(help="Root of all random streams.")] = None,
    settings: Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A setting; may be repeated.")] = None,
    stop_return: Annotated[float | None, typer.Option(help="Stop at this mean return of the last episodes.")] = None,
    stop_steps: Annotated[int | None, typer.Option(help="Stop after this many environment steps.")] = None,
    name: Annotated[str | None, typer.Option(help="Readable part of the experiment's id.")] = None,
    from_checkpoint: Annotated[str | None, typer.Option(help="Checkpoint, or run, to start from.")] = None,
    url: Url = None,
    token: Token = None,
    directory: Directory = None,
    runs_dir: RunsDir = Path("runs"),
    json: JsonFlag = False,
) -> None:
    """Submit an experiment to a cell and return at once."""
    from rollstream_cli.document import SpecOptions, build_spec
    from rollstream_cli.find_cell import connect
    from rollstream_cli.output import result_console, write_json
    from rollstream_cli.run_directory import new_run_id

    spec = build_spec(
        SpecOptions(
            algorithm=algorithm,
            environment=env,
            file=file,
            name=name,
            actors=actors,
            envs_per_actor=envs_per_actor,
            seed=seed,
            stop_return=stop_return,
            stop_steps=stop_steps,
            overrides=settings or (),
            from_checkpoint=from_checkpoint,
        )
    )
    rest = connect(url=url, token=token, directory=directory, runs_dir=runs_dir)
    view = rest.post("/v1/experiments", spec.model_dump(mode="json"), id=new_run_id(spec.name))
    if json:
        write_json(view, "-")
        return
    console = result_console()
    console.print(f"{view['id']}  {view['phase']}", markup=False)
    console.print(f"see how it goes: rollstream status {view['id']}", markup=False, soft_wrap=True)


def stop(
    experiment: Annotated[str, typer.Argument(metavar="ID", help="The experiment.")],
    *,
    wait: Annotated[bool, typer.Option(help="Wait until it has ended.")] = True,
    url: Url = None,
    token: Token = None,
    directory: Directory = None,
    runs_dir: RunsDir = Path("runs"),
    json: JsonFlag = False,
) -> None:
    """Stop an experiment: it saves a checkpoint, writes its summary and ends in phase `stopped`."""
    rest = _connect(url, token, directory, runs_dir)
    reply = _order(rest, experiment, "stop")
    if wait:
        reply = {**reply, "phase": _wait_for_end(rest, experiment)}
    _print_order(reply, json=json)


def pause(
    experiment: Annotated[str, typer.Argument(metavar="ID", help="The experiment.")],
    *,
    url: Url = None,
    token: Token = None,
    directory: Directory = None,
    runs_dir: RunsDir = Path("runs"),
    json: JsonFlag = False,
) -> None:
    """Pause an experiment: it saves a checkpoint and gives its actors back; `resume` continues it."""
    _print_order(_order(_connect(url, token, directory, runs_dir), experiment, "pause"), json=json)


def _connect(url: str | None, token: str | None, directory: Path | None, runs_dir: Path) -> Rest:
    from rollstream_cli.find_cell import connect

    return connect(url=url, token=token, directory=directory, runs_dir=runs_dir)


def _order(rest: Rest, experiment: str, order: str) -> dict[str, object]:
    reply: dict[str, object] = rest.post(f"/v1/experiments/{experiment}/{order}")
    return reply


def _wait_for_end(rest: Rest, experiment: str) -> str:
    """Follow the events of the experiment until it has ended; its phase then, or whatever it is when that takes too long."""
    from rollstream.clock import Deadline, SystemClock
    from rollstream.config import FINAL_PHASES
    from rollstream_cli.follow import Follower, Inbox

    inbox = Inbox()
    follower = Follower(rest, experiment, inbox=inbox)
    follower.start()
    deadline = Deadline(SystemClock(), after_s=STOP_WITHIN_S)
    while not deadline.passed():
        inbox.next(timeout_s=min(1.0, deadline.remaining_s()))
        phase = str(rest.get(f"/v1/experiments/{experiment}")["phase"])
        if phase in FINAL_PHASES:
            break
    follower.stop()
    return phase


def _print_order(reply: dict[str, object], *, json: bool) -> None:
    from rollstream_cli.output import result_console, write_json

    if json:
        write_json(reply, "-")
    else:
        result_console().print(f"{reply['id']}  ordered: {reply['ordered']}, phase: {reply['phase']}", markup=False)
