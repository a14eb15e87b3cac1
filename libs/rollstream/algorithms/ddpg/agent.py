"""What is optimized in DDPG: what TD3 optimizes, by settings of its own."""

from __future__ import annotations

from rollstream.algorithms.td3.agent import Td3Agent

__all__ = ["DdpgAgent"]


class DdpgAgent(Td3Agent):
    """DDPG for one environment, given by its leaves: actions are Boxes with bounds."""
