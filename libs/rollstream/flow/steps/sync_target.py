"""sync_target: copy the weights to the target network every so many updates."""

from __future__ import annotations

from dataclasses import dataclass

from rollstream.flow.sides import LearnerSide
from rollstream.flow.step import Bound, Step
from rollstream.flow.steps.schedule import EveryUpdates, require_interval

__all__ = ["sync_target"]


def sync_target(*, every_updates: int) -> Step:
    """Copy the weights to the target network once `every_updates` updates have passed since the last time."""
    require_interval(every_updates, what="sync_target")
    return Step(
        name="sync_target",
        bind=_SyncTarget(every_updates),
        where="learner",
        settings={"every_updates": every_updates},
        takes="batch",
        gives="batch",
    )


@dataclass(frozen=True, slots=True)
class _SyncTarget:
    every_updates: int

    def __call__(self, side: LearnerSide) -> Bound:
        return EveryUpdates(side, side.sync_target, self.every_updates, side.updates())
