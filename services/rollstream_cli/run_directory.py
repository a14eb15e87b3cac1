"""The folder of a run: where its cell lives, what it was, and how it can be continued.

runs/<id>/cell.json, cell.lock      the supervisor, while it lives
          server/                   data of the embedded Redis
          logs/<member>.log         what each process wrote
          checkpoints/ ...          written by the learner
          summary.json              results
"""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rollstream.config import ExperimentSpec
from rollstream.errors import ConfigError, RollstreamError, StoreRefused, StoreUnavailable
from rollstream_cli.cell.state import write_privately
from rollstream_cli.errors import Interrupted

__all__ = ["Run", "find_run", "new_run_id", "read_run", "removed_if_it_never_began", "write_run", "write_summary"]

RUN_FILE = "run.json"
SUMMARY_FILE = "summary.json"
NEVER_BEGAN_EXIT_CODES = frozenset(
    {ConfigError.exit_code, StoreUnavailable.exit_code, StoreRefused.exit_code, Interrupted.exit_code}
)


def new_run_id(name: str) -> str:
    """Name and six hex digits."""
    return f"{name}-{secrets.token_hex(3)}"


def write_run(directory: Path, *, experiment: str, spec: Mapping[str, Any], phase: str, cell_dir: Path) -> None:
    """Write what a run is, so that it can be continued."""
    run = {"experiment": experiment, "phase": phase, "cell_dir": str(cell_dir.absolute()), "spec": dict(spec)}
    directory.mkdir(parents=True, exist_ok=True)
    write_privately(directory / RUN_FILE, json.dumps(run, indent=2) + "\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run that has begun once."""

    directory: Path
    experiment: str
    phase: str
    """Phase when its command ended; `running` when the command was killed."""
    cell_dir: Path
    spec: Mapping[str, Any]

    def checkpoints(self) -> str | None:
        """Where its checkpoints are; None when it has made none."""
        folder = self.directory / "checkpoints"
        return str(folder.absolute()) if any(path.name.isdigit() for path in folder.glob("*")) else None

    def check_that_it_can_go_on(self, spec: ExperimentSpec) -> None:
        """Refuse to continue a run that has reached its stop rule, when the rule is the same."""
        if self.phase == "succeeded" and spec.stop == ExperimentSpec.model_validate(dict(self.spec)).stop:
            raise ConfigError(
                f"{self.directory} has reached its stop rule; say how far it shall go on with --stop-return or --stop-steps"
            )


def find_run(name: str, *, runs_dir: Path) -> Run | None:
    """The run of `train` in the folder `name`, or with that id in `runs_dir`; None when there is none."""
    for directory in (Path(name), runs_dir / name):
        if (directory / RUN_FILE).is_file():
            return read_run(directory)
    if Path(name).is_dir():
        return read_run(Path(name))  # says what is missing
    return None


def read_run(directory: Path) -> Run:
    """What `write_run` wrote."""
    path = directory / RUN_FILE
    try:
        run = json.loads(path.read_bytes())
        return Run(
            directory=directory,
            experiment=str(run["experiment"]),
            phase=str(run["phase"]),
            cell_dir=Path(run["cell_dir"]),
            spec=dict(run["spec"]),
        )
    except FileNotFoundError:
        raise ConfigError(f"{directory} holds no run of `rollstream train` (no {RUN_FILE})") from None
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"{path} is damaged ({error!r}); start again with `rollstream train`") from error


@contextmanager
def removed_if_it_never_began(directory: Path) -> Iterator[None]:
    """Remove `directory`, when the block made it, after an error that comes before any work: bad input, no Redis, Ctrl-C.

    After other errors it stays: the logs in it tell more than the message.
    """
    is_new = not directory.exists()
    try:
        yield
    except RollstreamError as error:
        if is_new and error.exit_code in NEVER_BEGAN_EXIT_CODES:
            shutil.rmtree(directory, ignore_errors=True)
        raise


def write_summary(directory: Path, summary: Mapping[str, Any]) -> Path:
    """Write `summary.json` in one step and return its path."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / SUMMARY_FILE
    write_privately(path, json.dumps(summary, indent=2) + "\n")
    return path
