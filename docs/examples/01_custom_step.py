"""1. A step of your own: a plain function in the actors, and a small class in the learner.

    python docs/examples/01_custom_step.py

The flow is PPO's with two more lines. `share_of_good` runs inside every actor, with every rollout; `Smoothed` remembers something, so it
has `state` and `restore`, and a resumed run goes on where it was.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rollstream.algorithms import Algorithm, register
from rollstream.algorithms.ppo.agent import PpoAgent
from rollstream.algorithms.ppo.config import PpoConfig
from rollstream.config import ExperimentSpec, load
from rollstream.flow import Actors, LearnerHandle, Stream, advantages, standardize
from rollstream.spaces import Batch
from rollstream_cli.inline import run

__all__ = ["PpoAgent", "PpoConfig", "flow"]


def share_of_good(batch: Batch) -> Batch:
    """Metrics of a batch travel with it and stand in the reports."""
    share = float((batch.columns["advantage"] > 0).mean())
    return replace(batch, metrics={**batch.metrics, "share_of_good": share})


class Smoothed:
    """The mean of a metric over all batches so far, each new one with a tenth of the weight."""

    def __init__(self, metric: str) -> None:
        self.metric, self.value = metric, 0.5

    def __call__(self, batch: Batch) -> Batch:
        self.value += 0.1 * (batch.metrics[self.metric] - self.value)
        return replace(batch, metrics={**batch.metrics, f"{self.metric}_smoothed": self.value})

    def state(self) -> dict[str, Any]:
        return {"value": self.value}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.value = float(state["value"])


def flow(config: PpoConfig, *, actors: Actors, learner: LearnerHandle) -> Stream[Any]:
    """PPO with two steps of our own."""
    return (
        actors.rollouts(steps=config.rollout_steps)
        .for_each(advantages(discount=config.discount, gae_lambda=config.gae_lambda))
        .for_each(share_of_good)  # in every actor
        .gather_sync()
        .for_each(Smoothed("share_of_good"))  # in the learner
        .for_each(standardize("advantage"))
        .for_each(learner.update())
        .for_each(learner.publish())
        .report(every_s=config.report_every_s)
    )


def main() -> None:
    """Train for a few rounds and print what the steps told."""
    register(Algorithm(name="watched-ppo", package=__name__, settings="PpoConfig", agent="PpoAgent", needs_replay=False))
    document = {"algorithm": "watched-ppo", "environment": {"id": "CartPole-v1"}, "stop": {"env_steps": 10_000}}
    spec = load(ExperimentSpec, document, what="experiment")

    def show(report: Mapping[str, Any]) -> None:
        metrics = report["metrics"]
        print(
            f"{report['env_steps']:>6} steps  return {report['mean_return'] or 0:5.1f}  "
            f"good {metrics['share_of_good']:.2f}, smoothed {metrics['share_of_good_smoothed']:.2f}"
        )

    with tempfile.TemporaryDirectory() as runs:
        run(spec, runs_dir=Path(runs), report=show)


if __name__ == "__main__":
    main()
