"""What flows where in MAML: each actor learns tasks by gradient steps of its own; the learner improves where these steps start."""

from __future__ import annotations

from typing import Any

from rollstream.algorithms.maml.config import MamlConfig
from rollstream.flow import Actors, LearnerHandle, Stream
from rollstream.flow.steps import adapt

__all__ = ["flow"]


def flow(config: MamlConfig, *, actors: Actors, learner: LearnerHandle) -> Stream[Any]:
    """One round: every live actor's tasks from the same weights, with the rows before and after adaptation."""
    adaptation = adapt(
        tasks=config.tasks_per_actor,
        rollout_steps=config.rollout_steps,
        inner_steps=config.inner_steps,
        discount=config.discount,
        gae_lambda=config.gae_lambda,
    )
    return (
        actors.generate(adaptation)
        .gather_sync()
        .for_each(learner.update())
        .for_each(learner.publish())
        .report(every_s=config.report_every_s)
    )
