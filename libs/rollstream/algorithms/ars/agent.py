"""What is optimized in ARS: the return of a linear policy, along the best of some random directions."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rollstream.algorithms.ars.config import ArsConfig
from rollstream.algorithms.search import SearchAgent, SearchLearning
from rollstream.learning import LearningAgent

__all__ = ["ArsAgent", "ars_direction"]

SMALLEST = 1e-8
"""Divides instead of a deviation of 0: all returns were equal, and so are the differences."""


class ArsAgent(SearchAgent):
    """ARS for one environment, given by its leaves."""

    name = "ars"

    def learning(self, *, seed: int) -> LearningAgent:
        return _ArsLearning(self, seed=seed)


class _ArsLearning(SearchLearning):
    """The learning half: differences of the best directions' returns, in units of their deviation."""

    def direction(self, noise: npt.NDArray[np.float32], returns: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        config: ArsConfig = self._settings
        return -ars_direction(noise, returns, top=config.top_pairs)


def ars_direction(noise: npt.NDArray[np.float32], returns: npt.NDArray[np.float32], *, top: int) -> npt.NDArray[np.float32]:
    """Algorithm 2, line 7: sum over the `top` directions with the largest max(r+, r-) of (r+ - r-) noise / (top deviation), [P].

    The deviation is that of the 2 `top` returns which are used. With fewer directions than `top` (an actor was away) all are used.

    Shapes: noise [M, P], returns [M, 2].
    """
    best = np.argsort(-returns.max(axis=1), kind="stable")[:top]
    used = returns[best].astype(np.float64)
    weights = (used[:, 0] - used[:, 1]) / (len(best) * max(float(used.std()), SMALLEST))
    found: npt.NDArray[np.float32] = weights.astype(np.float32) @ noise[best]
    return found
