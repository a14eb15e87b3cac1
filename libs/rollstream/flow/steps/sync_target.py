"""sync_target: copy the weights to the target network every so many updates."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from rollstream.flow.sides import LearnerSide
from rollstream.flow.step import Bound, Step
from rollstream.flow.steps.schedule import EveryUpdates, require_interval
from rollstream.spaces import Batch

__all__ = ["sync_target"]


def sync_target(*, every_updates: int, policy: str = "") -> Step[Batch, Batch]:
    """Copy the weights (of `policy`) to the target network once `every_updates` updates of it have passed since the last time."""
    require_interval(every_updates, what="sync_target")
    return Step(
        name="sync_target",
        bind=_SyncTarget(every_updates, policy),
        where="learner",
        settings={"every_updates": every_updates, **({"policy": policy} if policy else {})},
        takes="batch",
        gives="batch",
    )


@dataclass(frozen=True, slots=True)
class _SyncTarget:
    every_updates: int
    policy: str

    def __call__(self, side: LearnerSide) -> Bound:
        if not self.policy:
            return EveryUpdates(side, side.sync_target, self.every_updates, side.updates())
        action = partial(side.sync_target, policy=self.policy)
        return EveryUpdates(side, action, self.every_updates, side.updates(policy=self.policy), policy=self.policy)
