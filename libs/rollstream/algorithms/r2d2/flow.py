"""What flows where in R2D2: actors fill a prioritized table with sequences; one learner drains it."""

from __future__ import annotations

from typing import Any

from rollstream.algorithms.r2d2.config import R2d2Config
from rollstream.flow import Actors, LearnerHandle, Stream, TableHandle, union
from rollstream.flow.steps import return_priorities, store_into
from rollstream.replay import ActedError, Sequence

__all__ = ["flow"]


def flow(config: R2d2Config, *, actors: Actors, learner: LearnerHandle, replay: TableHandle) -> Stream[Any]:
    """Ape-X over sequences: rows hold what the policy remembered, so that a sequence may start anywhere."""
    errors = ActedError(
        config.discount,
        steps=config.n_step,
        eta=config.priority_eta,
        floor=config.priority_floor,
        compressed=config.rescale_values,
    )
    items = Sequence(config.sequence_steps, config.stride_steps, burn_in=config.burn_in_steps, priority=errors)
    store = actors.rollouts(steps=config.rollout_steps).for_each(store_into(replay, items)).gather_async(in_flight=4)
    learn = (
        replay.samples(batch_items=config.batch_items, prefetch=4)
        .for_each(learner.update())
        .for_each(return_priorities(replay))
        .for_each(learner.sync_target(every_updates=config.target_sync_every_updates))
        .for_each(learner.publish(every_updates=config.publish_every_updates))
    )
    return union(store, learn, mode="as_ready").report(every_s=config.report_every_s)
