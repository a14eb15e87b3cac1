"""What can be set in QMIX: monotonic mixing of agents' action values, learned from a prioritized table."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from rollstream.algorithms.settings import ExplorationSettings, OptimizerSettings, PrioritySettings, ReplaySettings
from rollstream.graph.components.torso import Width

__all__ = ["QmixConfig"]


class QmixConfig(ReplaySettings, PrioritySettings, ExplorationSettings, OptimizerSettings):
    """Settings of QMIX (Rashid et al. 2018). Items are joint transitions: one holds what all agents saw and did."""

    n_step: int = Field(default=1, ge=1)
    """Rewards summed before the bootstrap value; 1 of the paper, since joint actions age fast while all agents learn."""
    max_gradient_norm: float = Field(default=10.0, gt=0)
    """Global norm to which gradients are clipped; 10 of the authors' code cuts outliers only."""
    huber_delta: float | None = Field(default=None, gt=0)
    """Errors beyond it count linearly, not squared; None squares all, as the paper does."""
    target_sync_every_updates: int = Field(default=100, ge=1)
    """Learner updates for which the target networks stay fixed; 100, as the networks are small. The paper waits 200 episodes."""
    hidden: tuple[Width, ...] = (64, 64)
    """Widths of the hidden layers of the network that all agents share."""
    activation: Literal["tanh", "relu"] = "relu"
    """Non-linearity of the hidden layers; relu is usual for values."""
    mixing_units: int = Field(default=32, ge=1, le=4_096)
    """Hidden units of the mixing network; the paper's 32."""
    hyper_units: int = Field(default=64, ge=1, le=4_096)
    """Hidden units of the networks that make the mixing network's weights; 64 of the authors' code."""

    @model_validator(mode="after")
    def _falling(self) -> QmixConfig:
        if self.epsilon_end > self.epsilon_start:
            raise ValueError(f"epsilon_end ({self.epsilon_end}) must be <= epsilon_start ({self.epsilon_start})")
        return self
