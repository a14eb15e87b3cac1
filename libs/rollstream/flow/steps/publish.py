"""publish: give the actors new weights every so many updates."""

from __future__ import annotations

from dataclasses import dataclass

from rollstream.flow.sides import LearnerSide
from rollstream.flow.step import Bound, Step
from rollstream.flow.steps.schedule import EveryUpdates, require_interval
from rollstream.spaces import Batch

__all__ = ["publish"]


def publish(*, every_updates: int = 1) -> Step[Batch, Batch]:
    """Publish the weights once `every_updates` updates have passed since the last time."""
    require_interval(every_updates, what="publish")
    return Step(
        name="publish",
        bind=_Publish(every_updates),
        where="learner",
        settings={"every_updates": every_updates},
        takes="batch",
        gives="batch",
    )


@dataclass(frozen=True, slots=True)
class _Publish:
    every_updates: int

    def __call__(self, side: LearnerSide) -> Bound:
        return EveryUpdates(side, side.publish, self.every_updates, side.updates())
