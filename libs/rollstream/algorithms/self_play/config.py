"""What can be set in self-play: PPO's own settings, and when and against whom snapshots play."""

from __future__ import annotations

from pydantic import Field, model_validator

from rollstream.algorithms.ppo.config import PpoConfig

__all__ = ["SelfPlayConfig"]


class SelfPlayConfig(PpoConfig):
    """Settings of PPO in a zero-sum game, against snapshots drawn as in Bansal et al. 2018 (arXiv 1710.03748), section 3.2."""

    snapshot_every_updates: int | None = Field(default=None, ge=1)
    """Updates after which a snapshot joins the league in any case; None: only the win rate decides."""
    snapshot_win_rate: float | None = Field(default=0.7, gt=0, le=1)
    """Share of the last 100 episodes against snapshots that must be won (return above 0) for a new one; None: only updates decide."""
    league_size: int = Field(default=10, ge=1, le=1_000)
    """Snapshots in the league; the oldest leave first. They travel with the weights, so 10 keep publications small."""
    latest_share: float = Field(default=0.2, ge=0, le=1)
    """Share of episodes against itself, from which both sides learn; the others are against snapshots, which guard against cycles."""

    @model_validator(mode="after")
    def _grows(self) -> SelfPlayConfig:
        if self.snapshot_every_updates is None and self.snapshot_win_rate is None:
            raise ValueError("one of snapshot_every_updates and snapshot_win_rate must be set, else the league never grows")
        return self
