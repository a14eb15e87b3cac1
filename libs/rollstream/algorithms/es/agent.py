"""What is optimized in ES: the expected return of weights with noise, along a gradient estimated from returns alone."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rollstream.algorithms.es.config import EsConfig
from rollstream.algorithms.search import SearchAgent, SearchLearning
from rollstream.learning import LearningAgent

__all__ = ["EsAgent", "centered_ranks", "es_gradient"]


class EsAgent(SearchAgent):
    """ES for one environment, given by its leaves."""

    name = "es"

    def learning(self, *, seed: int) -> LearningAgent:
        return _EsLearning(self, seed=seed)


class _EsLearning(SearchLearning):
    """The learning half: centered ranks weigh the noise."""

    def direction(self, noise: npt.NDArray[np.float32], returns: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        config: EsConfig = self._settings
        upwards = es_gradient(noise, returns, deviation=config.deviation)
        return np.float32(config.weight_decay) * self._parameters - upwards


def centered_ranks(returns: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Ranks among all returns, from -1/2 (lowest) to 1/2; equal returns share the mean of their ranks. Any shape; a single one is 0.

    The fitness shaping of section 2.1: what matters is which weights were better, not by how much, so one lucky episode does no harm.
    """
    flat = returns.reshape(-1)
    if len(flat) < 2:
        return np.zeros(returns.shape, np.float32)
    _, inverse, counts = np.unique(flat, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    mean_rank = last - (counts + 1) / 2  # of each value: the mean of ranks last - count ... last - 1
    shaped = mean_rank[inverse.reshape(-1)] / (len(flat) - 1) - 0.5
    return shaped.reshape(returns.shape).astype(np.float32)


def es_gradient(noise: npt.NDArray[np.float32], returns: npt.NDArray[np.float32], *, deviation: float) -> npt.NDArray[np.float32]:
    """Which way the return grows, [P]: sum of (u+ - u-) noise / (2 M deviation), u the centered ranks (algorithm 1 with antithetic pairs).

    Shapes: noise [M, P], returns [M, 2].
    """
    shaped = centered_ranks(returns)
    weights = (shaped[:, 0] - shaped[:, 1]) / np.float32(2 * len(returns) * deviation)
    found: npt.NDArray[np.float32] = weights.astype(np.float32) @ noise
    return found
