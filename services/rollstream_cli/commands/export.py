"""`rollstream export`: the policy of a run as a file that runs without Rollstream."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from rollstream_cli.commands.options import JsonFlag, RunsDir

__all__ = ["export"]


def export(
    run: Annotated[str, typer.Argument(metavar="RUN|CHECKPOINT", help="A run (its folder or id), or one checkpoint.")],
    *,
    form: Annotated[
        Literal["onnx", "pt2", "safetensors"],
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="`onnx` (ONNX Runtime), `pt2` (a program of torch.export), or `safetensors` (parameters and state by name).",
        ),
    ] = "onnx",
    to: Annotated[Path, typer.Option("--to", metavar="DIR", help="Folder for the policy and its metadata.json.")],
    stochastic: Annotated[
        bool, typer.Option("--stochastic", help="Sampled actions, from noise that is an input; else the most probable ones.")
    ] = False,
    batch: Annotated[int | None, typer.Option(metavar="ROWS", help="Fix the number of observations; else any.", min=1)] = None,
    runs_dir: RunsDir = Path("runs"),
    json: JsonFlag = False,
) -> None:
    """Write the policy of a run's newest good checkpoint, with a file that says what goes in, what comes out and how to run it.

    Inputs are the observation's columns, outputs the actions in the environment's own values.
    """
    import os

    from rollstream.errors import ConfigError
    from rollstream.graph.export import export_policy, signature_of
    from rollstream_cli.output import result_console, write_json
    from rollstream_cli.saved_policy import read_saved_policy

    saved = read_saved_policy(run, runs_dir=runs_dir, environment=os.environ)
    policy = saved.agent.policy
    signature = signature_of(policy, actions=saved.agent.actions, api="act" if stochastic else "greedy", rows=batch)
    try:
        to.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"cannot make the folder {to}: {error.strerror}; choose another one with --to") from error
    written = export_policy(
        policy,
        saved.tensors,
        signature=signature,
        observation=saved.observation,
        form=form,
        to=to,
        facts=saved.facts(),
    )
    if json:
        write_json({"files": [str(path) for path in written], **saved.facts()}, "-")
        return
    for path in written:
        result_console().print(str(path), markup=False, soft_wrap=True)
