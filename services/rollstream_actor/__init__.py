"""The actor service: steps environments for whichever experiment the cell assigns."""

__all__: list[str] = []
