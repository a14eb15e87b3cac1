"""What a part needs of its inputs, checked once in the shape pass, so that a space which does not fit is refused by name at build."""

from __future__ import annotations

import numpy as np

from rollstream.errors import SpaceError
from rollstream.graph.ops import Array
from rollstream.graph.scope import Scope

__all__ = ["require_integers", "require_shape"]


def require_shape(scope: Scope, x: Array, axes: tuple[str | int, ...], *, where: str, argument: str = "x") -> None:
    """Refuse an array with other axes than these; nothing is checked outside of the shape pass.

    Args:
        axes: a letter for an axis of any length, a number for one of that length.
        where: component and API, e.g. `Conv.output`.

    Raises:
        SpaceError: names the component's path, the API, the argument, the axes wanted and the shape found.
    """
    if scope.declaration is None:
        return
    fits = len(x.shape) == len(axes) and all(
        isinstance(axis, str) or axis == size for axis, size in zip(axes, x.shape, strict=True)
    )
    if not fits:
        wanted = ", ".join(str(axis) for axis in axes)
        raise SpaceError(f"{_place(scope)}: {where}, argument {argument}: needs the shape [{wanted}], got {list(x.shape)}")


def require_integers(scope: Scope, x: Array, *, where: str, argument: str) -> None:
    """Refuse an array of anything but integers; as `require_shape`."""
    if scope.declaration is not None and np.dtype(x.dtype).kind not in "iu":
        raise SpaceError(f"{_place(scope)}: {where}, argument {argument}: needs integers (a Discrete space), got {x.dtype}")


def _place(scope: Scope) -> str:
    return scope.path or "(root)"
