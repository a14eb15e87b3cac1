"""Asynchronous PPO: IMPALA's flow with PPO's clip."""

__all__: list[str] = []
