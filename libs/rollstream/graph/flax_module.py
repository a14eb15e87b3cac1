"""Where a user finds `FlaxModule`. Importing this imports JAX and Flax; `rollstream.graph` itself never does."""

from rollstream.graph.backends.jax.flax_module import FlaxModule

__all__ = ["FlaxModule"]
