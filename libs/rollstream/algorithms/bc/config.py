"""What can be set in behavior cloning."""

from __future__ import annotations

from rollstream.algorithms.imitating import ImitationSettings

__all__ = ["BcConfig"]


class BcConfig(ImitationSettings):
    """Settings of behavior cloning (Pomerleau 1991): supervised learning of recorded actions."""
