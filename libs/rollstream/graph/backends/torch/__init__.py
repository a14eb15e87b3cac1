"""PyTorch: the only folder that imports it. Nothing here is imported before a torch mode is asked for."""

__all__: list[str] = []
