"""What a run came to, in plain numbers with units: the same keys from a learner and from inline mode."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.config import ExperimentSpec
from rollstream.metrics import Counters, Report
from rollstream.spaces import Episodes

__all__ = ["Results", "weights_hash"]


def weights_hash(tensors: Mapping[str, npt.NDArray[Any]]) -> str:
    """SHA-256 of names and bytes of all tensors, in order of their names."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(tensors[name]).tobytes())
    return digest.hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """A run at its end.

    Attributes:
        report: the last one; None when the run ended before any.
        ran_s: seconds of running, over all learners that had it.
        tensors: the weights, by name.
        evaluation: greedy episodes; empty when it was not evaluated, then `mean_return` is that of training.
        actors: ids of the actors that contributed.
    """

    experiment: str
    spec: ExperimentSpec
    counters: Counters
    report: Report | None
    ran_s: float
    version: int
    tensors: Mapping[str, npt.NDArray[Any]]
    evaluation: Episodes
    actors: frozenset[str]
    checkpoint: str | None
    learning_curve: str | None

    def to_json(self) -> dict[str, Any]:
        """The summary; keys are listed in `docs/operations.md`."""
        spec, count, report = self.spec, self.counters.value, self.report or Report()
        steps, updates, seconds = count("env_steps_sampled"), count("updates"), max(self.ran_s, 1e-9)
        return {
            "experiment": self.experiment,
            "algorithm": spec.algorithm,
            "environment": spec.environment.id,
            "seed": spec.seed,
            "mean_return": float(self.evaluation.returns.mean()) if len(self.evaluation) else report.mean_return,
            "evaluation_episodes": len(self.evaluation),
            "training_mean_return": report.mean_return,
            "env_steps": steps,
            "env_steps_trained": count("env_steps_trained"),
            "env_steps_per_s": round(steps / seconds, 1),
            "updates": updates,
            "updates_per_s": round(updates / seconds, 1),
            "episodes": count("episodes"),
            "wall_s": round(self.ran_s, 3),
            "lag": report.lag,
            "max_lag": report.max_lag,
            "version": self.version,
            "actors_contributed": len(self.actors),
            "counters": self.counters.snapshot(),
            "tables": {name: dict(table) for name, table in report.tables.items()},
            "weights_sha256": weights_hash(self.tensors),
            "checkpoint": self.checkpoint,
            "learning_curve": self.learning_curve,
        }
