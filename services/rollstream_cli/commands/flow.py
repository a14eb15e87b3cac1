"""`rollstream flow`: the dataflow of an algorithm, drawn; and of an experiment while it runs, with rates and the bottleneck."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from rollstream_cli.commands.options import Directory, JsonFlag, RunsDir, Token, Url

__all__ = ["flow"]

flow = typer.Typer(help="See what flows where: before a run, and while it runs.", no_args_is_help=True)


class Form(StrEnum):
    """How a flow is printed."""

    tree = "tree"
    mermaid = "mermaid"
    json = "json"


@flow.callback()
def group() -> None:
    """See what flows where: before a run, and while it runs."""


@flow.command()
def show(
    algorithm: Annotated[str, typer.Argument(metavar="ALGO", help="ppo, dqn, ...; `rollstream algorithms` lists them.")],
    *,
    env: Annotated[str | None, typer.Option(help="Made once for its spaces; without it toy spaces stand in.")] = None,
    actors: Annotated[int, typer.Option(min=1, help="Actor processes that it asks for.")] = 2,
    settings: Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A setting; may be repeated.")] = None,
    form: Annotated[Form, typer.Option("--format", help="Tree with every operator's line, Mermaid graph, or JSON.")] = Form.tree,
) -> None:
    """Draw the flow of an algorithm: what runs in actors, what in the learner, and the edges with their bounds."""
    import os

    from rollstream.flow import view_of
    from rollstream.flow.drawing import mermaid, tree
    from rollstream_cli.allowed_modules import allowed_modules
    from rollstream_cli.document import SpecOptions, build_spec
    from rollstream_cli.flow.subject import describe_flow
    from rollstream_cli.output import result_console, write_json

    spec = build_spec(SpecOptions(algorithm=algorithm, environment=env or "toy", overrides=settings or ()))
    view = view_of(
        describe_flow(
            algorithm,
            spec.settings,
            environment=spec.environment if env is not None else None,
            actors=actors,
            allow=allowed_modules(os.environ, env or ""),
        )
    )
    if form is Form.json:
        write_json(view.to_json(), "-")
        return
    text = mermaid(view) if form is Form.mermaid else tree(view)
    result_console().print(text.rstrip("\n"), markup=False, soft_wrap=True)


@flow.command()
def watch(
    experiment: Annotated[str | None, typer.Argument(metavar="ID", help="The experiment; else the newest that runs.")] = None,
    *,
    every_s: Annotated[float, typer.Option(min=0.1, help="Seconds between looks; learners tell once a second.")] = 1.0,
    url: Url = None,
    token: Token = None,
    directory: Directory = None,
    runs_dir: RunsDir = Path("runs"),
    json: JsonFlag = False,
) -> None:
    """Rates, depths, work and waits of every operator, live, and the one bottleneck in words; `--json` prints one look."""
    from rollstream.clock import SystemClock
    from rollstream_cli.find_cell import connect
    from rollstream_cli.flow.live import FlowWatch, newest_running
    from rollstream_cli.output import result_console, write_json
    from rollstream_cli.replay.top import keys_of_terminal

    rest = connect(url=url, token=token, directory=directory, runs_dir=runs_dir)
    chosen = experiment or newest_running(rest.get("/v1/experiments"))
    if json:
        write_json(rest.get(f"/v1/experiments/{chosen}/flow"), "-")
        return
    with keys_of_terminal(SystemClock()) as keys:
        FlowWatch(rest, chosen).run(result_console(), every_s=every_s, keys=keys)
