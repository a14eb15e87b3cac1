"""Algorithms: a registry, and one folder each: what can be set, what is optimized, what flows where."""

from rollstream.algorithms.registry import (
    Algorithm,
    algorithm,
    known,
    make_agent,
    make_flow,
    needs_replay,
    register,
    settings_type,
    takes_actors,
)

__all__ = [
    "Algorithm",
    "algorithm",
    "known",
    "make_agent",
    "make_flow",
    "needs_replay",
    "register",
    "settings_type",
    "takes_actors",
]
