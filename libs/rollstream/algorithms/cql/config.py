"""What can be set in CQL."""

from __future__ import annotations

from pydantic import Field

from rollstream.algorithms.sac.config import TemperatureSettings
from rollstream.algorithms.settings import OfflineSettings, PolyakSettings

__all__ = ["CqlConfig"]


class CqlConfig(TemperatureSettings, PolyakSettings, OfflineSettings):
    """Settings of CQL (Kumar et al. 2020, arXiv 2006.04779). Those of the temperature are for Box actions, where it is SAC."""

    conservative_weight: float = Field(default=1.0, ge=0)
    """Weight of the term that holds down the values of actions that nobody took [alpha]; 0 believes what the network makes up."""
    conservative_samples: int = Field(default=4, ge=1)
    """For Box actions: how many are drawn uniformly, and how many by the policy, to find values that are too high; the paper's 10."""
