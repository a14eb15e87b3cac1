"""`rollstream graph report`: what an experiment's learner computes, part by part, and how long each mode takes to build it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, cast

import typer

from rollstream_cli.commands.options import JsonTo

__all__ = ["graph"]

graph = typer.Typer(help="Look at what an algorithm computes.", no_args_is_help=True)


@graph.callback()
def group() -> None:
    """Look at what an algorithm computes."""


@graph.command()
def report(
    spec: Annotated[Path, typer.Argument(metavar="SPEC", help="The experiment's file (YAML or JSON).")],
    *,
    modes: Annotated[
        list[str] | None,
        typer.Option("--mode", metavar="MODE", help="Build every part alone in this mode too; may be repeated."),
    ] = None,
    rows: Annotated[int, typer.Option(min=1, help="Rows for which parts are built.")] = 256,
    draw: Annotated[Path | None, typer.Option(metavar="FILE", help="Also draw the tree: .png, .svg, .pdf, or .mmd.")] = None,
    settings: Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A setting; may be repeated.")] = None,
    json_to: JsonTo = None,
) -> None:
    """The tree of the loss and its policy: shapes, parameters, milliseconds of the shape pass and of building each part alone."""
    import os
    from dataclasses import asdict

    from rollstream.graph.component_report import component_report
    from rollstream_cli.allowed_modules import allowed_modules
    from rollstream_cli.document import SpecOptions, build_spec
    from rollstream_cli.graph.drawing import draw_report
    from rollstream_cli.graph.subject import loss_of
    from rollstream_cli.graph.table import print_report
    from rollstream_cli.json_target import check_json_target
    from rollstream_cli.output import result_console, write_json

    check_json_target(json_to)
    experiment = build_spec(SpecOptions(file=spec, overrides=settings or ()))
    found = component_report(
        loss_of(experiment, allow=allowed_modules(os.environ, experiment.environment.id)), modes=cast(Any, modes or ()), rows=rows
    )
    if draw is not None:
        draw_report(found, draw)
    if json_to is None:
        print_report(found, result_console())
    else:
        write_json(asdict(found), json_to)
