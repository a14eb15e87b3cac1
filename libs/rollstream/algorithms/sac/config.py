"""What can be set in SAC, for Box and for Discrete actions."""

from __future__ import annotations

from pydantic import Field

from rollstream.algorithms.settings import OffPolicySettings
from rollstream.config import Frozen

__all__ = ["SacConfig", "TemperatureSettings"]


class TemperatureSettings(Frozen):
    """How much randomness is worth."""

    initial_temperature: float = Field(default=1.0, gt=0)
    """Weight of the entropy at the start [alpha]; 1, from which it finds its own way."""
    learn_temperature: bool = True
    """Move the temperature so that the policy's entropy comes to its target; else it stays what it is."""
    target_entropy: float | None = None
    """Entropy that the policy is held at, in nats; None: minus the numbers in a Box action; for Discrete see `target_entropy_share`."""
    target_entropy_share: float = Field(default=0.3, ge=0, le=1)
    """For Discrete actions: target entropy as a share of log A, that of random play. The paper's 0.98 hardly lets the policy choose."""


class SacConfig(TemperatureSettings, OffPolicySettings):
    """Settings of SAC (Haarnoja et al. 2018, arXiv 1812.05905; Christodoulou 2019, arXiv 1910.07207). Defaults solve Pendulum-v1."""
