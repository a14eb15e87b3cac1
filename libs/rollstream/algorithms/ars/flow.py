"""What flows where in ARS: actors play whole episodes with perturbed weights, places of noise and returns cross, one step a round."""

from __future__ import annotations

from typing import Any

from rollstream.algorithms.ars.config import ArsConfig
from rollstream.flow import Actors, LearnerHandle, Stream
from rollstream.flow.steps import perturbations

__all__ = ["flow"]


def flow(config: ArsConfig, *, actors: Actors, learner: LearnerHandle) -> Stream[Any]:
    """One round: the pairs of all live actors, around the same weights."""
    share = -(-config.pairs // actors.count)
    search = perturbations(
        pairs=share, deviation=config.deviation, steps=config.rollout_steps, episode_steps=config.episode_steps
    )
    return (
        actors.generate(search)
        .gather_sync()
        .for_each(learner.update())
        .for_each(learner.publish())
        .report(every_s=config.report_every_s)
    )
