"""A policy as a program of torch (`torch.export`): runs wherever torch runs, without Rollstream."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from rollstream.graph.backends.torch.ops import TorchOps
from rollstream.graph.declare import Component
from rollstream.graph.executable import output_columns
from rollstream.graph.export.signature import Signature
from rollstream.graph.inputs import bind
from rollstream.graph.memory import Memory
from rollstream.graph.scope import Parameters, Scope
from rollstream.spaces import Leaf

__all__ = ["torch_program"]

EXAMPLE_ROWS = 3
"""Rows of the example with which a program for any number of rows is traced; 1 would become a constant."""


class _Program(nn.Module):
    """An API as a module; its tensors have their own names."""

    def __init__(self, policy: Component, *, memory: Memory, signature: Signature) -> None:
        super().__init__()
        self._api = getattr(policy, signature.api)
        self._arguments = policy.arguments(signature.api)
        self._signature = signature
        self._live = {name: self._placed(name, view) for name, view in memory.live_views.items()}
        self._state = {name: self._placed(name, view) for name, view in memory.state_views.items()}

    def _placed(self, name: str, view: npt.NDArray[Any]) -> tuple[nn.Module, str]:
        """Where a tensor lies: a module for each part of its dotted name."""
        module: nn.Module = self
        *parents, last = name.split(".")
        for part in parents:
            if part not in module._modules:
                module.add_module(part, nn.Module())
            module = module.get_submodule(part)
        module.register_buffer(last, torch.from_numpy(view.copy()))
        return module, last

    def forward(self, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        """Outputs by name from inputs by name."""
        live, state = (
            {name: getattr(module, last) for name, (module, last) in placed.items()} for placed in (self._live, self._state)
        )
        scope = Scope(TorchOps(), Parameters(live=live, frozen=live, target=live, state=state, written={}))
        columns = output_columns(self._api(scope, **bind(self._arguments, inputs)))
        outputs = {}
        for column, name in self._signature.outputs(list(columns)).items():
            leaf = self._signature.leaf(column)
            outputs[name] = columns[column] if leaf is None else _as_the_environment_takes_it(leaf, columns[column])
        return outputs


def torch_program(policy: Component, *, memory: Memory, signature: Signature) -> tuple[bytes, list[dict[str, Any]]]:
    """The program as `torch.export.save` writes it, and its outputs for the metadata."""
    module = _Program(policy, memory=memory, signature=signature).eval()
    rows = signature.rows or EXAMPLE_ROWS
    example = {item.name: torch.from_numpy(np.zeros(item.full_shape(rows), item.dtype)) for item in signature.inputs}
    with torch.no_grad():
        program = torch.export.export(module, (example,), dynamic_shapes=_dynamic(signature), strict=False)
        outputs = module(example)
    buffer = io.BytesIO()
    torch.export.save(program, buffer)
    lead = ["rows"] if signature.rows is None else [signature.rows]
    described = [
        {"name": name, "dtype": value.numpy().dtype.str, "shape": [*lead, *value.shape[1:]]} for name, value in outputs.items()
    ]
    return buffer.getvalue(), described


def _dynamic(signature: Signature) -> tuple[Mapping[str, Any]] | None:
    if signature.rows is not None:
        return None
    rows = torch.export.Dim("rows", min=1, max=1 << 20)
    return ({item.name: {0: rows} if item.per_row else {} for item in signature.inputs},)


def _as_the_environment_takes_it(leaf: Leaf, value: Tensor) -> Tensor:
    """In the leaf's dtype and, for a Box, within its bounds whatever rounding did."""
    dtype = torch.from_numpy(np.zeros(0, leaf.dtype)).dtype
    if leaf.kind == "box":
        wide = value.to(dtype if dtype.is_floating_point else torch.float64)
        low, high = (
            torch.from_numpy(np.reshape(np.asarray(bound, np.float64), leaf.shape)).to(wide.dtype)
            for bound in (leaf.low, leaf.high)
        )
        value = torch.clamp(wide, low, high)
    return value.to(dtype)
