"""Proximal policy optimization (Schulman et al. 2017)."""

__all__: list[str] = []
