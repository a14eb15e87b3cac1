"""What can be set in PPO. Defaults solve CartPole-v1 and are the usual ones for small observation vectors."""

from __future__ import annotations

from pydantic import Field, model_validator

from rollstream.algorithms.settings import ActorCriticSettings, OnPolicySettings, OptimizerSettings, RecurrentSettings

__all__ = ["PpoConfig"]


class PpoConfig(OnPolicySettings, ActorCriticSettings, RecurrentSettings, OptimizerSettings):
    """Settings of PPO; letters in brackets are those of Schulman et al. 2017."""

    epochs: int = Field(default=4, ge=1)
    """Passes over each round of data [K]; more reuse learns faster per step until the ratio clips everything."""
    batch_rows: int = Field(default=256, ge=2)
    """Rows in one minibatch [M]; 256 keeps one update below a millisecond or two on one core."""
    gae_lambda: float = Field(default=0.95, ge=0, le=1)
    """Mix of short and long returns in the advantage [lambda]; 0.95 trades variance for a little bias."""
    clip_ratio: float = Field(default=0.2, gt=0)
    """How far the new policy's probability ratio may move before its gradient is cut [epsilon]; the paper's 0.2."""
    accumulate_parts: int = Field(default=1, ge=1)
    """Parts in which a minibatch is computed, one after the other (torch modes); more than 1 where it does not fit into memory."""

    @model_validator(mode="after")
    def _whole_sequences(self) -> PpoConfig:
        if self.recurrent and self.batch_rows < self.sequence_steps:
            raise ValueError(
                f"batch_rows ({self.batch_rows}) must be >= sequence_steps ({self.sequence_steps}): a minibatch holds whole sequences"
            )
        return self
