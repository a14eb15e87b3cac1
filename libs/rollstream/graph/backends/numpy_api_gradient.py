"""The gradient of an API's outputs by the tape, for tests: what `torch.gradient` says by autograd."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.graph.backends.numpy_gradient import record_gradient
from rollstream.graph.backends.numpy_ops import NumpyOps
from rollstream.graph.backends.numpy_tape import Recorded, Tape
from rollstream.graph.declare import Component
from rollstream.graph.executable import output_columns
from rollstream.graph.inputs import bind
from rollstream.graph.memory import Memory
from rollstream.graph.scope import Parameters, Scope

__all__ = ["api_gradient"]


def api_gradient(
    component: Component,
    *,
    api: str,
    memory: Memory,
    inputs: Mapping[str, npt.NDArray[Any]],
    cotangents: Mapping[str, npt.NDArray[np.float32]],
) -> npt.NDArray[np.float32]:
    """Of the sum over `cotangents` of output times cotangent, with respect to `memory.flat`, [P]."""
    found, ops, tape = np.zeros_like(memory.flat), NumpyOps(), Tape()
    places = memory.layout.split(found)
    frozen, target, state = (
        {name: tape.input(view) for name, view in views.items()}
        for views in (memory.live_views, memory.target_views, memory.state_views)
    )
    live = {name: tape.parameter(view, places[name]) for name, view in memory.live_views.items()}
    scope = Scope(ops, Parameters(live=live, frozen=frozen, target=target, state=state, written={}))
    arguments = {name: tape.input(np.asarray(array)) for name, array in inputs.items()}
    with np.errstate(all="ignore"):
        outputs = output_columns(getattr(component, api)(scope, **bind(component.arguments(api), arguments)))
        totals = [ops.sum(outputs[name] * value) for name, value in cotangents.items()]
        total = sum(totals[1:], start=totals[0])
        if isinstance(total, Recorded):
            record_gradient(total)
        tape.run()
    return found
