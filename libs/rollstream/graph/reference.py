"""An API in plain NumPy: what every other mode is compared with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.graph.backends.numpy_ops import NumpyOps
from rollstream.graph.declare import Component
from rollstream.graph.inputs import bind
from rollstream.graph.layout import FlatLayout
from rollstream.graph.scope import Parameters, Scope

__all__ = ["reference"]


def reference(
    component: Component,
    *,
    api: str,
    layout: FlatLayout,
    flat: npt.NDArray[Any],
    inputs: Mapping[str, npt.NDArray[Any]],
    frozen: npt.NDArray[Any] | None = None,
    target: npt.NDArray[Any] | None = None,
    dtype: type[np.floating[Any]] = np.float32,
) -> Any:
    """What the API returns.

    Args:
        flat: parameters [P].
        inputs: by input name.
        frozen: parameters where no gradient flows, when they are not `flat` (finite differences move `flat` alone).
        target: parameters of the target network; `flat` when None.
        dtype: of all floating-point numbers inside.
    """
    live, still, other = (
        layout.split(np.asarray(vector, dtype))
        for vector in (flat, flat if frozen is None else frozen, flat if target is None else target)
    )
    scope = Scope(NumpyOps(dtype=dtype), Parameters(live=live, frozen=still, target=other))
    return getattr(component, api)(scope, **bind(component.arguments(api), inputs))
