"""What can be set."""

from __future__ import annotations

from rollstream.algorithms.ppo.config import PpoConfig

__all__ = ["Settings"]


class Settings(PpoConfig):
    """PPO's settings, and where it fails."""

    fault: str = ""
    """`agent`, `flow`, `actor_step`, `loss`, `learning`; empty: nowhere."""
