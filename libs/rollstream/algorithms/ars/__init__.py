"""Augmented random search (Mania et al. 2018)."""

__all__: list[str] = []
