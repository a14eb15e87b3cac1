"""Algorithms: a registry, and one folder each: what can be set, what is optimized, what flows where."""

from rollstream.algorithms.registry import Algorithm, algorithm, known, needs_replay, settings_type

__all__ = ["Algorithm", "algorithm", "known", "needs_replay", "settings_type"]
