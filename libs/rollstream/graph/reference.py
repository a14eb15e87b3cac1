"""An API in plain NumPy: what every other mode is compared with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.graph.backends.numpy_ops import NumpyOps
from rollstream.graph.declare import Component
from rollstream.graph.inputs import bind
from rollstream.graph.memory import Memory
from rollstream.graph.ops import Array, Ops
from rollstream.graph.scope import Parameters, Scope

__all__ = ["reference"]


def reference(
    component: Component,
    *,
    api: str,
    memory: Memory,
    inputs: Mapping[str, npt.NDArray[Any]],
    moved: npt.NDArray[Any] | None = None,
    written: dict[str, Array] | None = None,
    dtype: type[np.floating[Any]] = np.float32,
    ops: Ops | None = None,
) -> Any:
    """What the API returns.

    Args:
        memory: parameters and state; they are not changed.
        inputs: by input name.
        moved: parameters [P] in place of those of `memory`, except where no gradient flows (for finite differences).
        written: where new state goes, by name.
        dtype: of all floating-point numbers inside.
        ops: the table to compute with, of the same dtype; None: NumPy's.
    """
    live = memory.layout.split(np.asarray(memory.flat if moved is None else moved, dtype))
    frozen, target, state = (
        {name: np.asarray(view, dtype) for name, view in views.items()}
        for views in (memory.live_views, memory.target_views, memory.state_views)
    )
    sink = {} if written is None else written
    scope = Scope(ops or NumpyOps(dtype=dtype), Parameters(live=live, frozen=frozen, target=target, state=state, written=sink))
    return getattr(component, api)(scope, **bind(component.arguments(api), inputs))
