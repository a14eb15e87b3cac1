"""The gradient of an API's outputs, for tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from rollstream.graph.backends.torch.ops import TorchOps
from rollstream.graph.backends.torch.tensors import split
from rollstream.graph.declare import Component
from rollstream.graph.executable import output_columns
from rollstream.graph.inputs import bind
from rollstream.graph.memory import Memory
from rollstream.graph.scope import Parameters, Scope

__all__ = ["gradient"]


def gradient(
    component: Component,
    *,
    api: str,
    memory: Memory,
    inputs: Mapping[str, npt.NDArray[Any]],
    cotangents: Mapping[str, npt.NDArray[np.float32]],
) -> npt.NDArray[np.float32]:
    """By autograd: of the sum over `cotangents` of output times cotangent, with respect to `memory.flat`, [P]."""
    vector = torch.from_numpy(memory.flat.copy()).requires_grad_()
    live = split(memory.layout, vector)
    frozen = {name: part.detach() for name, part in live.items()}
    target, state = (
        {name: torch.from_numpy(view.copy()) for name, view in views.items()}
        for views in (memory.target_views, memory.state_views)
    )
    scope = Scope(TorchOps(), Parameters(live=live, frozen=frozen, target=target, state=state, written={}))
    arguments = component.arguments(api)
    tensors = {name: torch.from_numpy(array) for name, array in inputs.items()}
    outputs = output_columns(getattr(component, api)(scope, **bind(arguments, tensors)))
    none = (vector * 0.0).sum()  # outputs that no parameter reaches have no gradient of their own
    total = none + sum((outputs[name] * torch.from_numpy(value)).sum() for name, value in cotangents.items())
    (found,) = torch.autograd.grad(total, vector)
    return np.asarray(found.numpy())
