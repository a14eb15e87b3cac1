"""7. Debugging: everything in one process and one thread, so that prints and breakpoints in a step, a loss or an environment work.

    python docs/examples/07_debugging_inline.py

The flow of an experiment stands in one file; when a step fails, the error names it, its line, and the user's own traceback. On the command
line the same is `rollstream train ppo --env CartPole-v1 --inline`.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from rollstream.algorithms import Algorithm, register
from rollstream.algorithms.ppo.agent import PpoAgent
from rollstream.algorithms.ppo.config import PpoConfig
from rollstream.config import ExperimentSpec, load
from rollstream.errors import FlowError
from rollstream.flow import Actors, LearnerHandle, Stream, advantages
from rollstream.spaces import Batch
from rollstream_cli.inline import run

__all__ = ["PpoAgent", "PpoConfig", "flow"]


def look(batch: Batch) -> Batch:
    """Where to look: put `breakpoint()` here, and `batch.columns` is at hand."""
    shapes = {name: column.shape for name, column in batch.columns.items()}
    print(f"version {batch.version}: {batch.env_steps} steps, {shapes}")
    return batch


def wrong(batch: Batch) -> Batch:
    """A step with a mistake in it, made on purpose."""
    if batch.version == 3:
        raise ValueError(f"expected advantages below 100, got {batch.columns['advantage'].max():.1f}")
    return batch


def flow(config: PpoConfig, *, actors: Actors, learner: LearnerHandle) -> Stream[Any]:
    """PPO, looked at."""
    return (
        actors.rollouts(steps=config.rollout_steps)
        .for_each(advantages(discount=config.discount, gae_lambda=config.gae_lambda))
        .for_each(wrong)
        .gather_sync()
        .for_each(look)
        .for_each(learner.update())
        .for_each(learner.publish())
        .report(every_s=config.report_every_s)
    )


def main() -> None:
    """Run until the mistake shows, and show how it is told."""
    register(Algorithm(name="looked-at-ppo", package=__name__, settings="PpoConfig", agent="PpoAgent", needs_replay=False))
    document = {"algorithm": "looked-at-ppo", "environment": {"id": "CartPole-v1"}, "stop": {"env_steps": 20_000}}
    spec = load(ExperimentSpec, document, what="experiment")
    with tempfile.TemporaryDirectory() as runs:
        try:
            run(spec, runs_dir=Path(runs), report=lambda report: None)
        except FlowError as error:
            print(f"the operator: {error.operator}, line {error.line}, in {error.actor}")
            print(f"the error: {error}")
            print(f"the cause, with its own traceback: {error.__cause__!r}")


if __name__ == "__main__":
    main()
