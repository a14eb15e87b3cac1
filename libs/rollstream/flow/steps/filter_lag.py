"""filter_lag: data by weights that are too old is dropped, and counted."""

from __future__ import annotations

from dataclasses import dataclass

from rollstream.errors import ConfigError
from rollstream.flow.place import calling_place
from rollstream.flow.sides import LearnerSide
from rollstream.flow.step import Bound, Step
from rollstream.spaces import Batch

__all__ = ["filter_lag"]


def filter_lag(*, max_lag: int | None) -> Step[Batch, bool]:
    """For `filter`: keep batches whose oldest weights are at most `max_lag` versions old; None keeps all.

    What is dropped is counted under the reason `max_lag`.
    """
    if max_lag is not None and max_lag < 0:
        raise ConfigError(f"max_lag must be >= 0 or None, got {max_lag} ({calling_place()})")
    return Step(
        name="filter_lag",
        bind=_FilterLag(max_lag),
        where="learner",
        settings={"max_lag": max_lag},
        takes="batch",
        gives="batch",
        drops_as="max_lag",
    )


@dataclass(frozen=True, slots=True)
class _FilterLag:
    max_lag: int | None

    def __call__(self, side: LearnerSide) -> Bound:
        return _keep_all if self.max_lag is None else _BoundFilter(side, self.max_lag).is_fresh


@dataclass(frozen=True, slots=True)
class _BoundFilter:
    side: LearnerSide
    max_lag: int

    def is_fresh(self, batch: Batch) -> bool:
        """Whether the batch is young enough."""
        return self.side.version() - batch.version <= self.max_lag


def _keep_all(batch: Batch) -> bool:
    return True
