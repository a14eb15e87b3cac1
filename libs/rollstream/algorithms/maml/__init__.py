"""Model-agnostic meta-learning: weights from which one gradient step learns a task."""

__all__: list[str] = []
