"""What can be set in DDPG: the settings of TD3, with its three tricks left out."""

from __future__ import annotations

from pydantic import Field

from rollstream.algorithms.td3.config import Td3Config

__all__ = ["DdpgConfig"]


class DdpgConfig(Td3Config):
    """Settings of DDPG (Lillicrap et al. 2016, arXiv 1509.02971). Noise on actions is Gaussian, without memory: the correlated noise of
    the paper brings nothing more (Fujimoto et al. 2018, appendix)."""

    target_sync_every_updates: int = Field(default=1, ge=1)
    """Learner updates between moves of the target networks; 1 of the paper."""
    policy_delay_updates: int = Field(default=1, ge=1)
    """The actor moves in one of so many updates; in each one."""
    twin: bool = False
    """Two critics, of which the lower one is believed; the paper has one."""
    target_noise: float = Field(default=0.0, ge=0)
    """Deviation of the noise on the target's actions; the paper has none."""
