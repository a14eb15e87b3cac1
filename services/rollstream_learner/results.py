"""What is left when a run ends: the greedy policy's return, a learning curve, and a summary in plain numbers."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.acting import Policy, evaluate
from rollstream.algorithms.agent import Agent
from rollstream.config import ExperimentSpec
from rollstream.envs import make_environment
from rollstream.graph import build_acting
from rollstream.metrics import Report, draw_learning_curve
from rollstream.seeding import child_generator, child_seed
from rollstream.spaces import Episodes

__all__ = ["PublishedWeights", "draw_curve", "greedy_episodes", "weights_hash"]

MAX_EVALUATION_ENVIRONMENTS = 32


class PublishedWeights:
    """Weights as the learner published them, without a round trip through Redis."""

    def __init__(self, version: int, tensors: Mapping[str, npt.NDArray[Any]]) -> None:
        self.version = version
        self.tensors = tensors


def weights_hash(tensors: Mapping[str, npt.NDArray[Any]]) -> str:
    """SHA-256 of all tensors in order of their names."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(tensors[name]).tobytes())
    return digest.hexdigest()


def greedy_episodes(
    spec: ExperimentSpec, agent: Agent, tensors: Mapping[str, npt.NDArray[Any]], *, version: int, allow: Sequence[str]
) -> Episodes:
    """Play `spec.evaluation_episodes` greedy episodes in fresh environments, seeded apart from training."""
    envs = _largest_divisor(spec.evaluation_episodes, at_most=MAX_EVALUATION_ENVIRONMENTS)
    environment = make_environment(spec.environment, envs=envs, seed=child_seed(spec.seed, "evaluation"), allow=allow)
    try:
        policy = Policy(
            acting=build_acting(agent.policy, batch=envs),
            action=agent.action,
            extra=agent.extra_columns,
            generator=child_generator(spec.seed, "evaluation"),
        )
        policy.load(PublishedWeights(version, tensors))
        return evaluate(policy, environment, episodes=spec.evaluation_episodes)
    finally:
        environment.close()


def draw_curve(reports: Sequence[Report], path: Path, *, spec: ExperimentSpec) -> str:
    """The learning curve as PNG; returns its path, or nothing when there is nothing to draw."""
    if not any(report.mean_return is not None for report in reports):
        return ""
    title = f"{spec.algorithm} on {spec.environment.id}, seed {spec.seed}"
    draw_learning_curve(reports, path, title=title, goal=spec.stop.mean_return)
    return str(path)


def _largest_divisor(number: int, *, at_most: int) -> int:
    return max(divisor for divisor in range(1, min(number, at_most) + 1) if number % divisor == 0)
