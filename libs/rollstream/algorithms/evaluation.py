"""Greedy evaluation of an algorithm's policy in fresh environments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.acting import evaluate
from rollstream.algorithms.agent import Agent
from rollstream.algorithms.policies import make_policy
from rollstream.config import ExperimentSpec
from rollstream.envs import make_environment
from rollstream.errors import EnvironmentFault
from rollstream.seeding import child_generator, child_seed
from rollstream.spaces import Episodes

__all__ = ["Evaluator", "LocalWeights", "greedy_episodes"]

MAX_ENVIRONMENTS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalWeights:
    """Weights that need no trip through Redis."""

    version: int
    tensors: Mapping[str, npt.NDArray[Any]]


def greedy_episodes(spec: ExperimentSpec, agent: Agent, weights: LocalWeights, *, allow: Sequence[str]) -> Episodes:
    """Play `spec.evaluation_episodes` greedy episodes in fresh environments, seeded apart from training.

    Args:
        allow: modules from which an environment's entry point may come.

    Raises:
        EnvironmentFault: the environment failed, and says that it did so in the evaluation.
    """
    if not spec.evaluation_episodes:
        return Episodes()
    try:
        return _play(spec, agent, weights, episodes=spec.evaluation_episodes, seed=spec.seed, allow=allow)
    except EnvironmentFault as fault:
        raise EnvironmentFault(f"in the evaluation after training: {fault}") from fault.__cause__


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluator:
    """Evaluations during training, for flows without actors. Each one plays other episodes: they are seeded by its number."""

    spec: ExperimentSpec
    agent: Agent
    allow: Sequence[str]

    def __call__(self, tensors: Mapping[str, npt.NDArray[np.float32]], *, version: int, episodes: int, number: int) -> Episodes:
        """Play `episodes` greedy episodes in fresh environments."""
        seed = child_seed(self.spec.seed, "evaluations", number)
        weights = LocalWeights(version=version, tensors=tensors)
        return _play(self.spec, self.agent, weights, episodes=episodes, seed=seed, allow=self.allow)


def _play(
    spec: ExperimentSpec, agent: Agent, weights: LocalWeights, *, episodes: int, seed: int, allow: Sequence[str]
) -> Episodes:
    envs = _largest_divisor(episodes, at_most=MAX_ENVIRONMENTS)
    environment = make_environment(spec.environment, envs=envs, seed=child_seed(seed, "evaluation"), allow=allow)
    try:
        policy = make_policy(agent, envs=envs, generator=child_generator(seed, "evaluation"))
        policy.load(weights)
        return evaluate(policy, environment, episodes=episodes)
    finally:
        with suppress(EnvironmentFault):  # it is gone in any case, and must not hide what it was closed for
            environment.close()


def _largest_divisor(number: int, *, at_most: int) -> int:
    return max(divisor for divisor in range(1, min(number, at_most) + 1) if number % divisor == 0)
