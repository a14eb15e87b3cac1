"""What flows where in DQN: actors fill a prioritized table as fast as its limiter lets them; one learner drains it."""

from __future__ import annotations

from typing import Any

from rollstream.algorithms.dqn.config import DqnConfig
from rollstream.flow import Actors, LearnerHandle, Stream, TableHandle, union
from rollstream.flow.steps import return_priorities, store_into
from rollstream.replay import NStep

__all__ = ["flow"]


def flow(config: DqnConfig, *, actors: Actors, learner: LearnerHandle, replay: TableHandle) -> Stream[Any]:
    """Two branches that share nothing but the table: the limiter keeps their ratio."""
    store = (
        actors.rollouts(steps=config.rollout_steps).for_each(store_into(replay, NStep(config.n_step))).gather_async(in_flight=4)
    )
    learn = (
        replay.samples(batch_items=config.sample_items, prefetch=1)
        .for_each(learner.update())
        .for_each(return_priorities(replay))
        .for_each(learner.sync_target(every_updates=config.target_sync_every_updates))
        .for_each(learner.publish(every_updates=config.publish_every_updates))
    )
    return union(store, learn, mode="as_ready").report(every_s=config.report_every_s)
