"""The consistent cut: what a checkpoint of an experiment holds, and how a run continues from one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rollstream import __version__
from rollstream.checkpoint import (
    CheckpointRecord,
    LoadedCheckpoint,
    newest_good,
    prune,
    read_checkpoint,
    resolve,
    write_checkpoint,
)
from rollstream.config import ExperimentSpec
from rollstream.flow import Runner
from rollstream.learning import LearnerProcess, LearningAgent
from rollstream.metrics import Counters

if TYPE_CHECKING:
    from rollstream.replay import TableClient

__all__ = ["Cuts", "find_cut"]


def find_cut(folder: Path, spec: ExperimentSpec) -> LoadedCheckpoint | None:
    """Where to start from: the newest good checkpoint of this run, else `spec.from_checkpoint`, else nothing."""
    own = newest_good(folder)
    if own is not None:
        return read_checkpoint(own.path)
    if spec.from_checkpoint is not None:
        return read_checkpoint(resolve(Path(spec.from_checkpoint)).path)
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cuts:
    """Makes checkpoints of one running experiment."""

    folder: Path
    experiment: str
    spec: ExperimentSpec
    agent: LearningAgent
    runner: Runner
    side: LearnerProcess
    counters: Counters
    tables: Mapping[str, TableClient]

    def make(self, *, ran_s: float, deadline_s: float) -> CheckpointRecord:
        """Write the state between two items, keep the newest few, and return the record.

        Args:
            deadline_s: how long each replay shard has for its snapshot; the flow stands still meanwhile.

        Raises:
            CheckpointError: it could not be written; the earlier ones are untouched.
            DeadlineExceeded: a shard is away, so there is no consistent cut; the earlier ones are untouched.
        """
        with self.runner.quiet():
            state = {
                "agent": self.agent.state(),
                "flow": self.runner.state(),
                "counters": self.counters.snapshot(),
                "version": self.side.version(),
                "ran_s": ran_s,
            }
            exports = {
                name: table.begin_export(rows_max_bytes=self.spec.checkpoint.rows_max_bytes, deadline_s=deadline_s)
                for name, table in self.tables.items()
            }
        facts: dict[str, Any] = {
            "release": __version__,
            "experiment": self.experiment,
            "spec": self.spec.model_dump(mode="json"),
            "spec_hash": self.spec.hash,
            "version": state["version"],
            "env_steps": self.counters.value("env_steps_sampled"),
            "updates": self.counters.value("updates"),
            "tables": sorted(exports),
        }
        written = {f"table-{name}": export.to_file for name, export in exports.items()}  # rows, while the flow goes on
        record = write_checkpoint(self.folder, state=state, exports=written, facts=facts)
        prune(self.folder, keep=self.spec.checkpoint.keep)
        return record

    def restore(self, cut: LoadedCheckpoint) -> None:
        """Continue from `cut`. A table that still has its items keeps them; an empty one takes those of the cut.

        From a cut of another algorithm only what was learned is taken up (`sac` from `cql`, say): its flow and its data are others.
        """
        self.agent.restore(cut.state["agent"])
        if cut.record.manifest["spec"]["algorithm"] != self.spec.algorithm:
            return
        self.counters.restore(cut.state["counters"])
        self.runner.restore(cut.state["flow"])
        for name, table in self.tables.items():
            if table.info()["items"] == 0 and f"table-{name}" in cut.exports:
                table.restore_from(cut.exports[f"table-{name}"])
