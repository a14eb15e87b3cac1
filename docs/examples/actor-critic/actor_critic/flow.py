"""What flows where: as in PPO, but short rollouts, each used for one update."""

from __future__ import annotations

from typing import Any

from actor_critic.config import ActorCriticConfig
from rollstream.flow import Actors, LearnerHandle, Stream
from rollstream.flow.steps import advantages, standardize

__all__ = ["flow"]


def flow(config: ActorCriticConfig, *, actors: Actors, learner: LearnerHandle) -> Stream[Any]:
    """One round: every live actor's rollout by the same weights, then one update."""
    return (
        actors.rollouts(steps=config.rollout_steps)
        .for_each(advantages(discount=config.discount, gae_lambda=config.gae_lambda))
        .gather_sync()
        .for_each(standardize("advantage"))
        .for_each(learner.update())
        .for_each(learner.publish())
        .report(every_s=config.report_every_s)
    )
