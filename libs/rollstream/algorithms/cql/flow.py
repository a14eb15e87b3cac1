"""What flows where in CQL: recorded data drives updates, the target follows; an evaluation now and then tells how good it is."""

from __future__ import annotations

from typing import Any

from rollstream.algorithms.cql.config import CqlConfig
from rollstream.flow import Actors, LearnerHandle, Stream, TableHandle

__all__ = ["flow"]


def flow(config: CqlConfig, *, actors: Actors, learner: LearnerHandle, replay: TableHandle) -> Stream[Any]:
    """One branch from the table; there are no actors."""
    return (
        replay.samples(batch_items=config.batch_items, prefetch=4)
        .for_each(learner.update())
        .for_each(learner.sync_target(every_updates=config.target_sync_every_updates))
        .for_each(learner.publish(every_updates=config.publish_every_updates))
        .for_each(learner.evaluate(every_updates=config.evaluate_every_updates, episodes=config.evaluate_episodes))
        .report(every_s=config.report_every_s)
    )
