"""Importance weighted actor-learner architecture: actors run ahead, V-trace corrects."""

__all__: list[str] = []
