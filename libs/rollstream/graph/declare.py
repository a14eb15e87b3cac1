"""The shape pass: every API of a component runs once in NumPy on zeros, to declare parameters and show what does not fit.

It needs spaces only: no environment, no framework, no data. It takes a millisecond for an MLP.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from rollstream.clock import Clock, SystemClock
from rollstream.graph.backends.numpy_ops import NumpyOps
from rollstream.graph.inputs import Arguments, bind, flat_inputs
from rollstream.graph.layout import FlatLayout
from rollstream.graph.scope import Call, Declaration, Scope

__all__ = ["SHAPE_PASS_ROWS", "Component", "Declared", "declare"]

SHAPE_PASS_ROWS = 2
"""Rows of the zeros that the shape pass runs on: more than one, so that no row axis is taken for one of length 1."""


class Component(Protocol):
    """What can be built: names its APIs and, from spaces, what each takes. An API is a method `api(scope, **arguments)`."""

    @property
    def apis(self) -> tuple[str, ...]: ...

    def arguments(self, api: str) -> Arguments:
        """What `api` takes."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """Outcome of a shape pass: the layouts of parameters and state, and what was called."""

    layout: FlatLayout
    state_layout: FlatLayout
    calls: tuple[Call, ...]
    uses_target: bool
    duration_s: float


def declare(component: Component, *, clock: Clock | None = None) -> Declared:
    """Run the shape pass of all APIs.

    Raises:
        ConfigError: with the component's path, the API and what does not fit.
    """
    timer = clock or SystemClock()
    start_s = timer.monotonic_s()
    declaration = Declaration(clock=timer)
    for name in component.apis:
        arguments = component.arguments(name)
        run = getattr(component, name)
        with np.errstate(all="ignore"):  # zeros are no data
            run(Scope(NumpyOps(), declaration=declaration), **bind(arguments, _zeros(arguments)))
    return Declared(
        layout=FlatLayout(tuple(declaration.parameters.values())),
        state_layout=FlatLayout(tuple(declaration.state.values())),
        calls=tuple(declaration.calls),
        uses_target=declaration.uses_target,
        duration_s=timer.monotonic_s() - start_s,
    )


def _zeros(arguments: Arguments) -> Mapping[str, Any]:
    return {item.name: np.zeros(item.full_shape(SHAPE_PASS_ROWS), item.dtype) for item in flat_inputs(arguments)}
