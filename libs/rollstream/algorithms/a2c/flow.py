"""What flows where in A2C: advantages come from the actors, a barrier joins them, one update for each round."""

from __future__ import annotations

from typing import Any

from rollstream.algorithms.a2c.config import A2cConfig
from rollstream.flow import Actors, LearnerHandle, Stream
from rollstream.flow.steps import advantages

__all__ = ["flow"]


def flow(config: A2cConfig, *, actors: Actors, learner: LearnerHandle) -> Stream[Any]:
    """One round: every live actor's rollout by the same weights, then one update with all of them."""
    return (
        actors.rollouts(steps=config.rollout_steps)
        .for_each(advantages(discount=config.discount, gae_lambda=config.gae_lambda))
        .gather_sync()
        .for_each(learner.update())
        .for_each(learner.publish())
        .report(every_s=config.report_every_s)
    )
