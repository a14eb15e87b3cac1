"""What can be set in Ape-X: distributed prioritized replay."""

from __future__ import annotations

from pydantic import Field

from rollstream.algorithms.dqn.config import ActionValueSettings

__all__ = ["ApexConfig"]


class ApexConfig(ActionValueSettings):
    """Settings of Ape-X DQN (Horgan et al. 2018). Sizes are for small tasks on a laptop; the paper's stand beside them."""

    epsilon: float = Field(default=0.4, gt=0, lt=1)
    """Share of random actions of the environment that explores most; 0.4 of the paper."""
    epsilon_exponent: float = Field(default=7.0, ge=0)
    """The share falls to epsilon^(1 + this) over the environments of all actors, evenly in its logarithm; 7 of the paper [alpha]."""
    dueling: bool = True
    """Split value and advantage streams (Wang et al. 2016), as in the paper."""
    batch_items: int = Field(default=64, ge=1)
    """Items in one update; 64 keeps updates frequent, and the paper takes 512 for images."""
    target_sync_every_updates: int = Field(default=40, ge=1)
    """Learner updates for which the target network stays fixed; 2,500 in the paper, whose tasks are far longer."""
