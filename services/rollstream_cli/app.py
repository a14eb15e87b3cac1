"""The command line's surface: which commands there are. Their bodies import what they need when they run."""

from __future__ import annotations

import typer

from rollstream_cli.commands.train import resume, train

__all__ = ["app"]

app = typer.Typer(
    name="rollstream",
    help="Distributed reinforcement learning: train on this machine, or drive any cell by its URL.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(train)
app.command()(resume)
