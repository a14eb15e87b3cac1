"""From the name of an algorithm to its flow, without starting anything: toy spaces stand in for an environment that is not named."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rollstream.algorithms import make_agent, make_flow
from rollstream.algorithms.agent import Agent
from rollstream.config import EnvironmentSpec
from rollstream.envs import make_environment
from rollstream.errors import ConfigError, SpaceError
from rollstream.flow import Description
from rollstream.spaces import Leaf
from rollstream.spaces.agents import REWARDS, STATUS

__all__ = ["describe_flow"]

NUMBERS = Leaf(name="observation", kind="box", dtype="<f4", shape=(4,), low=(-math.inf,) * 4, high=(math.inf,) * 4)
CHOICE = Leaf(name="action", kind="discrete", dtype="<i8", shape=(), counts=(2,), starts=(0,))
FORCE = Leaf(name="action", kind="box", dtype="<f4", shape=(1,), low=(-1.0,), high=(1.0,))
TEAM = (
    *(replace(NUMBERS, name=f"observation.agent_{agent}") for agent in range(2)),
    Leaf(name=STATUS, kind="box", dtype="|u1", shape=(2,), low=(0.0,) * 2, high=(15.0,) * 2),
    Leaf(name=REWARDS, kind="box", dtype="<f4", shape=(2,), low=(-math.inf,) * 2, high=(math.inf,) * 2),
)
CHOICES = tuple(replace(CHOICE, name=f"action.agent_{agent}") for agent in range(2))
TOY_SPACES = (((NUMBERS,), (CHOICE,)), ((NUMBERS,), (FORCE,)), (TEAM, CHOICES))
"""Tried in turn: the first ones that the algorithm takes."""


def describe_flow(
    algorithm: str,
    settings: Mapping[str, Any],
    *,
    environment: EnvironmentSpec | None = None,
    actors: int = 2,
    allow: Sequence[str] = (),
) -> Description:
    """The flow, checked.

    Args:
        environment: is made once for its spaces, and closed; None: toy spaces.
        allow: modules from which an environment's entry point may come.

    Raises:
        ConfigError: unknown algorithm, bad settings, or spaces that do not suit it.
    """
    agent = _agent(algorithm, settings, environment, allow=allow)
    return Description(make_flow(algorithm, agent, actors=actors), tables=agent.table_names)


def _agent(algorithm: str, settings: Mapping[str, Any], environment: EnvironmentSpec | None, *, allow: Sequence[str]) -> Agent:
    if environment is not None:
        made = make_environment(environment, envs=1, seed=0, allow=allow)
        try:
            observation, actions = made.observation_leaves, made.action_leaves
        finally:
            made.close()
        return make_agent(algorithm, settings, observation=observation, actions=actions)
    refused: SpaceError | None = None
    for observation, actions in TOY_SPACES:
        try:
            return make_agent(algorithm, settings, observation=observation, actions=actions)
        except SpaceError as error:
            refused = error
    raise ConfigError(f"{algorithm} takes none of the toy spaces ({refused}); name an environment with --env") from refused
