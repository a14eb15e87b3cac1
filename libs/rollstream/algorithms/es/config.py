"""What can be set in ES. Defaults solve CartPole-v1."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from rollstream.algorithms.search import SearchSettings
from rollstream.graph.components.torso import Width

__all__ = ["EsConfig"]


class EsConfig(SearchSettings):
    """Settings of ES; letters in brackets are those of Salimans et al. 2017."""

    pairs: int = Field(default=20, ge=1)
    """Antithetic pairs of perturbed weights in a round, over all actors [n / 2]; 20 suit thousands of parameters and small tasks."""
    deviation: float = Field(default=0.1, gt=0)
    """Standard deviation of the noise on every parameter [sigma]."""
    learning_rate: float = Field(default=0.03, gt=0)
    """Step size of the optimizer [alpha]; Adam moves each parameter by about as much in a round."""
    weight_decay: float = Field(default=0.0, ge=0)
    """Pulls weights to 0 by so much of themselves, as a gradient; the paper's 0.005 keeps long runs from drowning the noise."""
    hidden: tuple[Width, ...] = (32, 32)
    """Widths of the hidden layers; the fewer parameters, the fewer perturbations tell a direction."""
    activation: Literal["tanh", "relu"] = "tanh"
    """Non-linearity of the hidden layers; tanh as in the paper."""
