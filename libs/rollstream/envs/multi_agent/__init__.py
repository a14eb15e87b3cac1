"""Environments with several agents: PettingZoo's parallel interface, as one batch whose rows hold all agents."""

from rollstream.envs.multi_agent.parallel import ParallelEnvironments, is_parallel

__all__ = ["ParallelEnvironments", "is_parallel"]
