"""What flows where in behavior cloning, and in MARWIL: recorded data drives updates; an evaluation now and then tells how good it is."""

from __future__ import annotations

from typing import Any

from rollstream.algorithms.settings import OfflineSettings
from rollstream.flow import Actors, LearnerHandle, Stream, TableHandle

__all__ = ["flow"]


def flow(config: OfflineSettings, *, actors: Actors, learner: LearnerHandle, replay: TableHandle) -> Stream[Any]:
    """One branch from the table; there are no actors."""
    return (
        replay.samples(batch_items=config.batch_items, prefetch=4)
        .for_each(learner.update())
        .for_each(learner.publish(every_updates=config.publish_every_updates))
        .for_each(learner.evaluate(every_updates=config.evaluate_every_updates, episodes=config.evaluate_episodes))
        .report(every_s=config.report_every_s)
    )
