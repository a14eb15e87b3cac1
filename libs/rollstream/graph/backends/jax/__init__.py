"""JAX: the only folder that imports it. Nothing here is imported before mode `jax` is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rollstream.graph.modes.requirements import require_jax

if TYPE_CHECKING:
    from rollstream.graph.backends.jax.flax_module import FlaxModule

__all__ = ["FlaxModule"]


def __getattr__(name: str) -> Any:
    """`FlaxModule` on demand: Flax takes longer to import than anything else of mode `jax`."""
    if name != "FlaxModule":
        raise AttributeError(f"module {__name__} has no attribute {name}")
    require_jax("jax")
    from rollstream.graph.backends.jax.flax_module import FlaxModule

    return FlaxModule
