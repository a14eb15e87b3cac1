"""What can be set in DDPPO: PPO whose updates run in the actors. Defaults solve CartPole-v1."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from rollstream.algorithms.settings import ActorCriticSettings, OnPolicySettings, OptimizerSettings

__all__ = ["DdppoConfig"]


class DdppoConfig(OnPolicySettings, ActorCriticSettings, OptimizerSettings):
    """Settings of DDPPO; those of its loss are PPO's."""

    epochs: int = Field(default=4, ge=1)
    """Passes of every actor over its own round of data."""
    minibatches: int = Field(default=4, ge=1)
    """Parts of a pass, each one update of all actors together; a number and not a size, so that all make equally many."""
    gae_lambda: float = Field(default=0.95, ge=0, le=1)
    """Mix of short and long returns in the advantage; 0.95 trades variance for a little bias."""
    clip_ratio: float = Field(default=0.2, gt=0)
    """How far the new policy's probability ratio may move before its gradient is cut; PPO's 0.2."""
    mode: Literal["numpy", "torch"] = "numpy"
    """How actors compute and apply gradients: NumPy is the fastest of small networks, `torch` is for large ones and convolutions."""
