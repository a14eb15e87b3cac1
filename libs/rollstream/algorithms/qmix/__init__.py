"""QMIX: agents that learn to act together from one reward, and act each by what it sees alone."""

__all__: list[str] = []
