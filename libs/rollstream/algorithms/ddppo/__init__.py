"""Decentralized data-parallel PPO (Wijmans et al. 2020)."""

__all__: list[str] = []
