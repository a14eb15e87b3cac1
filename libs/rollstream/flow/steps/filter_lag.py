"""filter_lag: data by weights that are too old is dropped, counted, and its actor is named."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

from rollstream.errors import ConfigError
from rollstream.flow.place import calling_place
from rollstream.flow.sides import LearnerSide
from rollstream.flow.step import Bound, Step
from rollstream.spaces import Batch

__all__ = ["filter_lag"]

NAMED_AGAIN_AFTER_S = 60.0
_LOG = logging.getLogger("rollstream.flow")


def filter_lag(*, max_lag: int | None) -> Step[Batch, bool]:
    """For `filter`: keep batches whose oldest weights are at most `max_lag` versions old; None keeps all.

    What is dropped is counted under the reason `max_lag`, and by actor as `env_steps_stale`. A warning names the actor, once a minute
    as long as it goes on.
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
    named_s: dict[str, float] = field(default_factory=dict)
    """When each actor was last named."""

    def is_fresh(self, batch: Batch) -> bool:
        """Whether the batch is young enough."""
        lag = self.side.version() - batch.version
        if lag <= self.max_lag:
            return True
        self.side.counters.add("env_steps_stale", batch.env_steps, reason=batch.actor or "several")
        self._name(batch.actor or "one of several actors", lag)
        return False

    def _name(self, actor: str, lag: int) -> None:
        now_s = self.side.clock.monotonic_s()
        if now_s - self.named_s.get(actor, -NAMED_AGAIN_AFTER_S) >= NAMED_AGAIN_AFTER_S:
            self.named_s[actor] = now_s
            _LOG.warning(
                "%s acted by weights %d versions old, max_lag is %d: what it sent is dropped. If this goes on, new weights do not "
                "reach it, or it is much slower than the learner",
                actor,
                lag,
                self.max_lag,
            )


def _keep_all(batch: Batch) -> bool:
    return True
