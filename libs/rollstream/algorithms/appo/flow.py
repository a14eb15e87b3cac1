"""What flows where in APPO: as in IMPALA, and a target network follows the one that learns."""

from __future__ import annotations

from typing import Any

from rollstream.algorithms.appo.config import AppoConfig
from rollstream.flow import Actors, LearnerHandle, Stream
from rollstream.flow.steps import filter_lag, trajectories

__all__ = ["flow"]


def flow(config: AppoConfig, *, actors: Actors, learner: LearnerHandle) -> Stream[Any]:
    """Rollouts in order of arrival, each mixed with earlier ones; new weights every few updates."""
    return (
        actors.rollouts(steps=config.rollout_steps)
        .for_each(trajectories(discount=config.discount))
        .gather_async(in_flight=config.in_flight)
        .filter(filter_lag(max_lag=config.max_lag))
        .batch(steps=config.batch_steps)
        .mix_replay(slots=config.replay_slots, share=config.replay_share)
        .for_each(learner.update())
        .for_each(learner.sync_target(every_updates=config.target_sync_every_updates))
        .for_each(learner.publish(every_updates=config.publish_every_updates))
        .report(every_s=config.report_every_s)
    )
