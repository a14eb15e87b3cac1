"""What can be set in TD3."""

from __future__ import annotations

from pydantic import Field, model_validator

from rollstream.algorithms.settings import OffPolicySettings

__all__ = ["Td3Config"]


class Td3Config(OffPolicySettings):
    """Settings of TD3 (Fujimoto et al. 2018, arXiv 1802.09477). Defaults solve Pendulum-v1. Noise is told as a share of half the range
    between the bounds of an action."""

    target_sync_every_updates: int = Field(default=2, ge=1)
    """Learner updates between moves of the target networks; 2, as often as the actor moves [d]."""
    policy_delay_updates: int = Field(default=2, ge=1)
    """The actor moves in one of so many updates [d]; 2 lets the critics settle before the actor follows them."""
    twin: bool = True
    """Two critics, of which the lower one is believed; one alone believes too much."""
    target_noise: float = Field(default=0.2, ge=0)
    """Deviation of the noise on the target's actions [sigma]; 0.2 of the paper smooths the critics' peaks."""
    target_noise_limit: float = Field(default=0.5, ge=0)
    """Where that noise is cut [c]; 0.5 of the paper keeps the action near the actor's."""
    exploration_noise_start: float = Field(default=1.0, ge=0)
    """Deviation of the noise on actions at the start; 1 fills the table with varied data, as the paper's random first steps do."""
    exploration_noise_end: float = Field(default=0.1, ge=0)
    """Deviation of the noise on actions in the end; 0.1 of the paper."""
    exploration_decay_steps: int = Field(default=5_000, ge=1)
    """Environment steps over which that noise falls linearly from start to end."""

    @model_validator(mode="after")
    def _falling(self) -> Td3Config:
        if self.exploration_noise_end > self.exploration_noise_start:
            raise ValueError(
                f"exploration_noise_end ({self.exploration_noise_end:g}) must be <= exploration_noise_start "
                f"({self.exploration_noise_start:g})"
            )
        return self
