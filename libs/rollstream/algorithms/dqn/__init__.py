"""Double Q-learning with prioritized replay and n-step returns."""

__all__: list[str] = []
