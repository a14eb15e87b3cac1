"""Behavior cloning (Pomerleau 1991)."""

__all__: list[str] = []
