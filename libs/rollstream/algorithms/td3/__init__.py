"""Twin delayed deterministic policy gradient (Fujimoto et al. 2018)."""

__all__: list[str] = []
