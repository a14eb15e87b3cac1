"""What flows where in DDPG: the same as in TD3."""

from __future__ import annotations

from rollstream.algorithms.td3.flow import flow

__all__ = ["flow"]
