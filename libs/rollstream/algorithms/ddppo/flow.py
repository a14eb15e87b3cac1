"""What flows where in DDPPO: actors learn together from their own rollouts; the learner counts, publishes and saves."""

from __future__ import annotations

from typing import Any

from rollstream.algorithms.ddppo.config import DdppoConfig
from rollstream.flow import Actors, LearnerHandle, Stream
from rollstream.flow.steps import advantages, standardize, train_with_peers

__all__ = ["flow"]


def flow(config: DdppoConfig, *, actors: Actors, learner: LearnerHandle) -> Stream[Any]:
    """No rows and no gradients cross: an actor's message is its counts, and of one of them the weights."""
    return (
        actors.rollouts(steps=config.rollout_steps, pull=False)
        .for_each(advantages(discount=config.discount, gae_lambda=config.gae_lambda))
        .for_each(standardize("advantage"))
        .for_each(train_with_peers(epochs=config.epochs, minibatches=config.minibatches, peers=actors.count))
        .gather_async(in_flight=2)
        .for_each(learner.update())
        .for_each(learner.publish())
        .report(every_s=config.report_every_s)
    )
