"""What flows where in self-play: PPO's rounds, of the rows that the learning policy played."""

from __future__ import annotations

from typing import Any

from rollstream.algorithms.self_play.agent import MAIN
from rollstream.algorithms.self_play.config import SelfPlayConfig
from rollstream.flow import Actors, LearnerHandle, Stream
from rollstream.flow.steps import advantages, select_policies, standardize

__all__ = ["flow"]


def flow(config: SelfPlayConfig, *, actors: Actors, learner: LearnerHandle) -> Stream[Any]:
    """One round: every live actor's rollout by the same weights and league; the league grows in the update."""
    return (
        actors.rollouts(steps=config.rollout_steps)
        .for_each(select_policies(MAIN))
        .for_each(advantages(discount=config.discount, gae_lambda=config.gae_lambda))
        .gather_sync()
        .for_each(standardize("advantage"))
        .for_each(learner.update(policy=MAIN))
        .for_each(learner.publish())
        .report(every_s=config.report_every_s)
    )
