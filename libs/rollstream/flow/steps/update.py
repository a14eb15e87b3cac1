"""update: one call of the learner with every batch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from rollstream.flow.sides import LearnerSide
from rollstream.flow.step import Bound, Step
from rollstream.spaces import Batch

__all__ = ["update"]


def update(policy: str = "") -> Step[Batch, Batch]:
    """Update the weights (of `policy`, where there are several) with every batch; its environment steps count as trained."""
    return Step(
        name="update",
        bind=_Update(policy),
        where="learner",
        settings={"policy": policy} if policy else {},
        takes="batch",
        gives="batch",
        settles="trained",
    )


@dataclass(frozen=True, slots=True)
class _Update:
    policy: str

    def __call__(self, side: LearnerSide) -> Bound:
        return partial(side.learn, policy=self.policy) if self.policy else side.learn
