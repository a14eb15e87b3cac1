"""Environments: whatever simulates, stepped as one batch, and turned into rows that do not show how it was vectorized.

Gymnasium is imported when an environment is made, not with this package.
"""

from rollstream.envs.collector import ActingPolicy, Collector
from rollstream.envs.inspection import EnvironmentInfo, inspect_environment
from rollstream.envs.make import make_environment
from rollstream.envs.random_policy import RandomPolicy
from rollstream.envs.vector_environment import FinalObservations, Step, VectorEnvironment, environment_seeds

__all__ = [
    "ActingPolicy",
    "Collector",
    "EnvironmentInfo",
    "FinalObservations",
    "RandomPolicy",
    "Step",
    "VectorEnvironment",
    "environment_seeds",
    "inspect_environment",
    "make_environment",
]
