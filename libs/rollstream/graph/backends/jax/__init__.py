"""JAX: the only folder that imports it. Nothing here is imported before mode `jax` is asked for."""

__all__: list[str] = []
