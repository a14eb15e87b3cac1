"""Asynchronous advantage actor-critic (Mnih et al. 2016)."""

__all__: list[str] = []
