"""Monotonic advantage re-weighted imitation learning (Wang et al. 2018)."""

__all__: list[str] = []
