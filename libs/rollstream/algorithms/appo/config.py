"""What can be set in APPO. Defaults solve CartPole-v1 and are for small observation vectors."""

from __future__ import annotations

from pydantic import Field

from rollstream.algorithms.impala.config import VtraceSettings

__all__ = ["AppoConfig"]


class AppoConfig(VtraceSettings):
    """Settings of APPO (Luo et al. 2020, IMPACT); letters in brackets are the paper's."""

    epochs: int = Field(default=1, ge=1)
    """Passes over each batch; what is replayed is passed over besides."""
    replay_share: float = Field(default=1.0, ge=0)
    """Earlier batches that are learned from again for each new one [circular buffer]; 0 learns from each once."""
    clip_ratio: float = Field(default=0.2, gt=0)
    """How far the policy's probability ratio to the target network may move before its gradient is cut [epsilon]."""
    target_sync_every_updates: int = Field(default=8, ge=1)
    """Updates for which the target network stays; about as many as bring the policy to the clip [n_target]."""
    worker_clip: float = Field(default=2.0, gt=0)
    """Largest ratio of the policy that acted to the target network that counts [rho]; 2 is the paper's."""
    kl_coefficient: float = Field(default=0.0, ge=0)
    """Weight of the divergence from the target network; 0, since the clip bounds it."""
    entropy_coefficient: float = Field(default=0.01, ge=0)
    """Weight of the entropy bonus; 0.01 keeps exploring while values are still wrong."""
