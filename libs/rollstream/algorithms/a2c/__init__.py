"""Advantage actor-critic, synchronous."""

__all__: list[str] = []
