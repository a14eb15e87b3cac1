"""R2D2: recurrent action values from replayed sequences."""

__all__: list[str] = []
