"""The command line's surface: which commands there are. Their bodies import what they need when they run."""

from __future__ import annotations

import typer

from rollstream_cli.commands.algorithms import algorithms
from rollstream_cli.commands.bench import bench
from rollstream_cli.commands.cell import down, scale, up
from rollstream_cli.commands.checkpoint import checkpoint
from rollstream_cli.commands.experiments import pause, stop, submit
from rollstream_cli.commands.export import export
from rollstream_cli.commands.flow import flow
from rollstream_cli.commands.graph import graph
from rollstream_cli.commands.logs import logs
from rollstream_cli.commands.replay import replay
from rollstream_cli.commands.resume import resume
from rollstream_cli.commands.status import status
from rollstream_cli.commands.train import train

__all__ = ["app"]

app = typer.Typer(
    name="rollstream",
    help="Distributed reinforcement learning: train on this machine, or drive any cell by its URL.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (train, resume, export, up, down, submit, status, logs, scale, pause, stop, algorithms):
    app.command()(command)
app.add_typer(checkpoint, name="checkpoint")
app.add_typer(replay, name="replay")
app.add_typer(graph, name="graph")
app.add_typer(flow, name="flow")
app.add_typer(bench, name="bench")
