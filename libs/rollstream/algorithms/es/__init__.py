"""Evolution strategies (Salimans et al. 2017)."""

__all__: list[str] = []
