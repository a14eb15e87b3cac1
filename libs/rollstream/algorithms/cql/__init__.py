"""Conservative Q-learning (Kumar et al. 2020)."""

__all__: list[str] = []
