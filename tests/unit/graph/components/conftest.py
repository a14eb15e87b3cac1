"""Runs a part in plain NumPy with parameters that a test writes down."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from rollstream.graph.backends.numpy_ops import NumpyOps
from rollstream.graph.scope import Parameters, Scope


@pytest.fixture
def run() -> Callable[..., Any]:
    """`run(part, *arrays, parameters={name: array}, state=..., api="output")`."""

    def call(
        part: Any,
        *arrays: npt.NDArray[Any],
        parameters: Mapping[str, Any] | None = None,
        state: Mapping[str, Any] | None = None,
        api: str = "output",
        written: dict[str, Any] | None = None,
    ) -> Any:
        live, kept = (
            {name: np.asarray(value, np.float32) for name, value in (given or {}).items()} for given in (parameters, state)
        )
        scope = Scope(NumpyOps(), Parameters(live=live, frozen=live, state=kept, written=written))
        return getattr(part, api)(scope, *arrays)

    return call
