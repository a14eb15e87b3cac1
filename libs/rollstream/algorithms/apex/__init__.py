"""Ape-X: many actors, each exploring in its own way, and priorities that they compute themselves."""

__all__: list[str] = []
