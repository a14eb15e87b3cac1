"""Soft actor-critic (Haarnoja et al. 2018; discrete: Christodoulou 2019)."""

__all__: list[str] = []
