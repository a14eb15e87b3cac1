"""What flows where in A3C: gradients are computed in the actors and applied one by one, in order of arrival."""

from __future__ import annotations

from typing import Any

from rollstream.algorithms.a3c.config import A3cConfig
from rollstream.flow import Actors, LearnerHandle, Stream
from rollstream.flow.steps import advantages, apply_gradients, compute_gradients

__all__ = ["flow"]


def flow(config: A3cConfig, *, actors: Actors, learner: LearnerHandle) -> Stream[Any]:
    """An actor has one gradient under way: it takes up new weights once its own gradient is in them."""
    return (
        actors.rollouts(steps=config.rollout_steps)
        .for_each(advantages(discount=config.discount, gae_lambda=config.gae_lambda))
        .for_each(compute_gradients())
        .gather_async(in_flight=1)
        .for_each(apply_gradients())
        .for_each(learner.publish())
        .report(every_s=config.report_every_s)
    )
