"""Exploration that differs from environment to environment: a ladder of epsilons over those of all actors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from pydantic import Field

from rollstream.acting import ActorPlace
from rollstream.config import Frozen

__all__ = ["EpsilonLadderSettings", "own_epsilons"]


class EpsilonLadderSettings(Frozen):
    """Random actions at a share of its own in each environment (Horgan et al. 2018)."""

    epsilon: float = Field(default=0.4, gt=0, lt=1)
    """Share of random actions of the environment that explores most; 0.4 of the paper."""
    epsilon_exponent: float = Field(default=7.0, ge=0)
    """The share falls to epsilon^(1 + this) over the environments of all actors, evenly in its logarithm; 7 of the paper [alpha]."""


def own_epsilons(
    settings: EpsilonLadderSettings, scalars: Mapping[str, float], *, place: ActorPlace, envs: int
) -> Mapping[str, Any]:
    """epsilon_i = epsilon^(1 + alpha i / (N - 1)) for environment i of the N in all actors (Horgan et al. 2018, section 4.1, where an
    actor has one environment). Shapes: -> [envs]."""
    first = min(place.ordinal, place.actors - 1) * envs
    share = (first + np.arange(envs)) / max(1, place.actors * envs - 1)
    return {**scalars, "epsilon": scalars["epsilon"] ** (1.0 + settings.epsilon_exponent * share)}
