"""Gradients in actors: a loss as a NumPy program that is made when the first rows come, so that no gradient framework is there.

    rows [M] ─▶ columns of the loss ─▶ forward, backward ─▶ flat vector [P]

Rollouts have no fixed number of rows (final observations are none to learn from), programs do: the program is made for the largest number
that came so far, and fewer rows are padded with weight 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy.typing as npt

from rollstream.errors import ConfigError
from rollstream.graph import Loss, Update, build_update
from rollstream.graph.modes.update import Gradient
from rollstream.spaces import Columns

__all__ = ["ActorGradients", "require_stateless"]


class ActorGradients:
    """The gradient of `loss` with fixed settings; see `rollstream.flow.steps.compute_gradients.GradientSource`."""

    def __init__(self, loss: Loss, *, settings: Mapping[str, float]) -> None:
        self._loss = loss
        self._settings = dict(settings)
        self._update: Update | None = None
        self._rows = 0

    def gradient(self, columns: Columns, tensors: Mapping[str, npt.NDArray[Any]]) -> Gradient:
        """The mean gradient of these rows [M, ...] by the parameters among `tensors`."""
        update = self._for(len(next(iter(columns.values()))))
        flat = update.layout.join({name: tensors[name] for name in update.layout.names})
        update.load_parameters(flat)
        return update.gradient(columns, **self._settings)

    def _for(self, rows: int) -> Update:
        if self._update is None or rows > self._rows:
            self._update = build_update(self._loss, batch_rows=rows, max_grad_norm=None, mode="numpy", seed=0)
            self._rows = rows
        return self._update


def require_stateless(policy: Any, *, algorithm: str) -> None:
    """Raise `ConfigError` when the policy keeps statistics of observations, which gradients cannot carry to the learner."""
    if "observe" in policy.apis:
        raise ConfigError(
            f"{algorithm} cannot normalize observations by running statistics: its learner gets gradients or weights, and sees no "
            "observation; leave normalize_observations off, or use a2c or ppo"
        )
