"""What flows where in Ape-X: actors fill a prioritized table with items whose priorities they computed; one learner drains it."""

from __future__ import annotations

from typing import Any

from rollstream.algorithms.apex.config import ApexConfig
from rollstream.flow import Actors, LearnerHandle, Stream, TableHandle, union
from rollstream.flow.steps import return_priorities, store_into
from rollstream.replay import ActedError, NStep

__all__ = ["flow"]


def flow(config: ApexConfig, *, actors: Actors, learner: LearnerHandle, replay: TableHandle) -> Stream[Any]:
    """Two branches that share nothing but the table: the limiter keeps their ratio."""
    items = NStep(config.n_step, priority=ActedError(config.discount, floor=config.priority_floor))
    store = actors.rollouts(steps=config.rollout_steps).for_each(store_into(replay, items)).gather_async(in_flight=4)
    learn = (
        replay.samples(batch_items=config.sample_items, prefetch=1)
        .for_each(learner.update())
        .for_each(return_priorities(replay))
        .for_each(learner.sync_target(every_updates=config.target_sync_every_updates))
        .for_each(learner.publish(every_updates=config.publish_every_updates))
    )
    return union(store, learn, mode="as_ready").report(every_s=config.report_every_s)
