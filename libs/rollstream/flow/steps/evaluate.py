"""evaluate: greedy episodes between updates, where no actor's episodes tell how good the policy is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from rollstream.errors import ConfigError
from rollstream.flow.place import calling_place
from rollstream.flow.sides import LearnerSide
from rollstream.flow.step import Bound, Step
from rollstream.flow.steps.schedule import EveryUpdates, require_interval
from rollstream.spaces import Batch, Episodes

__all__ = ["evaluate"]


def evaluate(*, every_updates: int, episodes: int) -> Step[Batch, Batch]:
    """Play `episodes` greedy episodes once `every_updates` updates have passed since the last time, in the learner, which waits.

    The batch that was under way tells of them, and they count as finished episodes: the reported mean return, and a stop rule, are
    those of evaluations. For flows without actors (learning from recorded data).
    """
    require_interval(every_updates, what="evaluate")
    if episodes < 1:
        raise ConfigError(f"episodes of evaluate must be >= 1, got {episodes} ({calling_place()})")
    return Step(
        name="evaluate",
        bind=_Evaluate(every_updates, episodes),
        where="learner",
        settings={"every_updates": every_updates, "episodes": episodes},
        takes="batch",
        gives="batch",
        tells_episodes=True,
    )


@dataclass(frozen=True, slots=True)
class _Evaluate:
    every_updates: int
    episodes: int

    def __call__(self, side: LearnerSide) -> Bound:
        return _BoundEvaluate(side, self.every_updates, self.episodes)


class _BoundEvaluate:
    """Attributes:
    played: the episodes of the newest evaluation, until a batch has taken them along.
    """

    def __init__(self, side: LearnerSide, every_updates: int, episodes: int) -> None:
        self._side = side
        self._episodes = episodes
        self._played: Episodes | None = None
        self._schedule = EveryUpdates(side, self._play, every_updates, side.updates())

    def __call__(self, batch: Batch) -> Batch:
        self._schedule(batch)
        played, self._played = self._played, None
        if played is None:
            return batch
        metrics = {"evaluation_return": float(played.returns.mean())} if len(played) else {}
        return replace(batch, episodes=played, metrics={**batch.metrics, **metrics})

    def state(self) -> dict[str, Any]:
        return self._schedule.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        self._schedule.restore(state)

    def _play(self) -> None:
        self._played = self._side.evaluate(episodes=self._episodes)
