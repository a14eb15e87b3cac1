"""What can be set in PPO for several agents: who plays whom, and PPO's own settings."""

from __future__ import annotations

from pydantic import Field

from rollstream.algorithms.ppo.config import PpoConfig
from rollstream.config import PolicySettings

__all__ = ["MultiPpoConfig"]


class MultiPpoConfig(PpoConfig):
    """Settings of independent PPO (de Witt et al. 2020, arXiv 2011.09533), with parameters shared by the agents of a policy."""

    policies: dict[str, PolicySettings] = Field(default_factory=lambda: {"shared": PolicySettings()}, min_length=1)
    """Agents of each policy, by its name; one for all, since agents of a kind learn fastest from what all of them see."""
