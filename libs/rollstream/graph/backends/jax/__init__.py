"""JAX: the only folder that imports it. Nothing here is imported before mode `jax` is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rollstream.graph.modes.requirements import require_jax

require_jax("jax")
import jax  # noqa: E402, F401 - so that importing this takes the time that JAX takes

if TYPE_CHECKING:
    from rollstream.graph.backends.jax.flax_module import FlaxModule

__all__ = ["FlaxModule"]


def __getattr__(name: str) -> Any:
    """`FlaxModule` on demand: Flax takes longer to import than all else together."""
    if name != "FlaxModule":
        raise AttributeError(f"module {__name__} has no attribute {name}")
    from rollstream.graph.backends.jax.flax_module import FlaxModule

    return FlaxModule
