"""What can be set in Ape-X: distributed prioritized replay."""

from __future__ import annotations

from pydantic import Field

from rollstream.algorithms.dqn.config import ActionValueSettings
from rollstream.algorithms.exploring import EpsilonLadderSettings

__all__ = ["ApexConfig"]


class ApexConfig(ActionValueSettings, EpsilonLadderSettings):
    """Settings of Ape-X DQN (Horgan et al. 2018). Sizes are for small tasks on a laptop; the paper's stand beside them."""

    dueling: bool = True
    """Split value and advantage streams (Wang et al. 2016), as in the paper."""
    batch_items: int = Field(default=64, ge=1)
    """Items in one update; 64 keeps updates frequent, and the paper takes 512 for images."""
    target_sync_every_updates: int = Field(default=40, ge=1)
    """Learner updates for which the target network stays fixed; 2,500 in the paper, whose tasks are far longer."""
