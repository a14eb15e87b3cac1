"""compute_gradients: an actor turns its rows into a gradient, and sends that in their place."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from rollstream.errors import ConfigError
from rollstream.flow.sides import ActorSide
from rollstream.flow.step import Step
from rollstream.spaces import Batch, Columns

__all__ = ["GRADIENT", "GRADIENT_ROWS", "REFUSED_METRIC", "GradientSource", "compute_gradients"]

_LOG = logging.getLogger("rollstream.flow")

GRADIENT, GRADIENT_ROWS = "gradient", "gradient_rows"
"""Columns: flat gradients [K, P], and how many rows each is the mean over [K]."""
REFUSED_METRIC = "gradients_refused."
"""Prefix of the metrics by which a message tells whose gradient was refused, because it is not finite."""


class GradientSource(Protocol):
    """What `gradients()` of an agent gives: its loss, ready to be differentiated in the actor."""

    def gradient(self, columns: Columns, tensors: Mapping[str, npt.NDArray[Any]]) -> Any:
        """Gradient of these rows by these weights: something with `vector` [P], `rows`, `metrics` and `is_finite`."""
        ...


def compute_gradients() -> Step[Batch, Batch]:
    """Replace a batch's columns by `gradient` [1, P] and `gradient_rows` [1], by the weights that acted; metrics tell its loss.

    The agent's `gradients()` is asked at the first batch. A gradient that is not finite stays here: its message has no row, and tells
    whose it was (`apply_gradients` counts it).
    """
    return Step(name="compute_gradients", bind=_Computing, where="actor", takes="batch", gives="batch")


@dataclass(slots=True)
class _Computing:
    side: ActorSide
    source: GradientSource | None = field(default=None, init=False)

    def __call__(self, batch: Batch) -> Batch:
        found = self._source().gradient(batch.columns, self.side.tensors())
        actor, finite = self.side.actor, bool(found.is_finite)
        metrics = {**batch.metrics, **found.metrics} if finite else {**batch.metrics, f"{REFUSED_METRIC}{actor}": 1.0}
        if not finite:
            _LOG.warning("the gradient of %s is not finite: %d rows, weights version %d", actor, found.rows, batch.version)
        columns = {
            GRADIENT: found.vector[None] if finite else found.vector[None][:0],
            GRADIENT_ROWS: np.full(int(finite), found.rows, np.float32),
        }
        return replace(batch, columns=columns, metrics=metrics)

    def _source(self) -> GradientSource:
        if self.source is None:
            agent = self.side.agent
            if not hasattr(agent, "gradients"):
                raise ConfigError(
                    f"compute_gradients needs an agent with a method gradients(), {type(agent).__name__} has none; "
                    "see rollstream.algorithms.a3c"
                )
            self.source = agent.gradients()
        assert self.source is not None
        return self.source
