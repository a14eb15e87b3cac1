"""The REST API of control: one file per group of endpoints, and what they share."""

__all__: list[str] = []
