"""Probability distributions over actions, as pure functions of their parameters."""

__all__: list[str] = []
