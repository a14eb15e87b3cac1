"""From an experiment's spec to the component that its learner updates: the loss over the policy, for the environment's spaces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rollstream.algorithms import make_agent
from rollstream.config import ExperimentSpec
from rollstream.envs import make_environment

__all__ = ["loss_of"]


def loss_of(spec: ExperimentSpec, *, allow: Sequence[str]) -> Any:
    """The loss component, built from settings and spaces; the environment is made once, for its spaces, and closed.

    Args:
        allow: modules from which an environment's entry point may come.

    Raises:
        EnvironmentFault: the environment cannot be made.
        RollstreamError: settings or spaces do not suit the algorithm.
    """
    environment = make_environment(spec.environment, envs=1, seed=spec.seed, allow=allow)
    try:
        observation, actions = environment.observation_leaves, environment.action_leaves
    finally:
        environment.close()
    return make_agent(spec.algorithm, spec.settings, observation=observation, actions=actions).loss
