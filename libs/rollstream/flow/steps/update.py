"""update: one call of the learner with every batch."""

from __future__ import annotations

from rollstream.flow.sides import LearnerSide
from rollstream.flow.step import Bound, Step

__all__ = ["update"]


def update() -> Step:
    """Update the weights with every batch; its environment steps count as trained."""
    return Step(name="update", bind=_learn, where="learner", takes="batch", gives="batch", settles="trained")


def _learn(side: LearnerSide) -> Bound:
    return side.learn
