"""`rollstream checkpoint list|verify`: what is saved, and whether it can be trusted. Works without a cell."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rollstream_cli.commands.options import JsonFlag, RunsDir

if TYPE_CHECKING:
    from rollstream.checkpoint import CheckpointRecord

__all__ = ["checkpoint"]

checkpoint = typer.Typer(help="List checkpoints of a run, and verify them.", no_args_is_help=True)

Where = Annotated[str, typer.Argument(metavar="RUN|CHECKPOINT", help="A run (its folder or id), or one checkpoint.")]


@checkpoint.command("list")
def list_command(where: Where, *, runs_dir: RunsDir = Path("runs"), json: JsonFlag = False) -> None:
    """List the checkpoints of a run, oldest first."""
    from rollstream_cli.output import result_console, write_json

    records = [_describe(record) for record in _records(where, runs_dir)]
    if json:
        write_json({"checkpoints": records}, "-")
        return
    from rich.table import Table

    table = Table("number", "env steps", "updates", "bytes", "path", box=None, padding=(0, 2, 0, 0))
    for record in records:
        table.add_row(*(_cell(record[name]) for name in ("number", "env_steps", "updates", "bytes", "path")))
    result_console().print(table, soft_wrap=True)


@checkpoint.command()
def verify(where: Where, *, runs_dir: RunsDir = Path("runs"), json: JsonFlag = False) -> None:
    """Check every file of a checkpoint, or of all of a run, against its manifest; exit code 5 when one is damaged."""
    from rollstream.checkpoint import verify_checkpoint
    from rollstream.errors import CheckpointError
    from rollstream_cli.output import result_console, write_json

    checked = {path: verify_checkpoint(path) for path in _paths(where, runs_dir)}
    damaged = {path: problems for path, problems in checked.items() if problems}
    if json:
        found = [{"path": str(path), "good": not problems, "problems": problems} for path, problems in checked.items()]
        write_json({"checkpoints": found, "good": not damaged}, "-")
    else:
        for path in checked:
            result_console().print(f"{path}  {'damaged' if path in damaged else 'good'}", markup=False, soft_wrap=True)
    if damaged:
        listed = "; ".join(f"{path}: {', '.join(problems)}" for path, problems in damaged.items())
        raise CheckpointError(f"{len(damaged)} of {len(checked)} checkpoint(s) cannot be trusted: {listed}")


def _paths(where: str, runs_dir: Path) -> list[Path]:
    """Folders of the checkpoints that are meant, also of those whose manifest is gone."""
    from rollstream.errors import CheckpointError

    for base in (Path(where), runs_dir / where):
        if base.name.isdigit() and base.is_dir():
            return [base]
        for folder in (base / "checkpoints", base):
            found = sorted(path for path in folder.glob("*") if path.name.isdigit() and path.is_dir())
            if found:
                return found
    raise CheckpointError(
        f"no checkpoint at {where}; it is no run (also not in {runs_dir}), no folder of checkpoints and no checkpoint"
    )


def _records(where: str, runs_dir: Path) -> list[CheckpointRecord]:
    from rollstream.checkpoint import list_checkpoints

    paths = _paths(where, runs_dir)
    wanted = set(paths)
    return [record for record in list_checkpoints(paths[0].parent) if record.path in wanted]


def _describe(record: CheckpointRecord) -> dict[str, Any]:
    manifest = record.manifest
    counters = manifest.get("counters")
    counters = counters if isinstance(counters, dict) else {}
    return {
        "number": record.number,
        "path": str(record.path),
        "env_steps": manifest.get("env_steps", counters.get("env_steps_sampled")),
        "updates": manifest.get("updates", counters.get("updates")),
        "bytes": sum(int(entry["bytes"]) for entry in manifest["files"].values()),
        "experiment": manifest.get("experiment", ""),
        "algorithm": manifest.get("algorithm", ""),
    }


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else str(value)
