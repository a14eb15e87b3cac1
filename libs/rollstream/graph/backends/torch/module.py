"""A user's own `torch.nn.Module` as a component.

    TorchModule(net).output(scope.child("net"), x)

Its parameters become part of the flat vector under their own names, and start as they are in the module. So it is published, saved,
clipped and optimized like any other component.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from rollstream.errors import ConfigError
from rollstream.graph.backends.torch.ops import TorchOps
from rollstream.graph.ops import Array
from rollstream.graph.scope import Scope, api
from rollstream.graph.unsupported import UnsupportedOp

__all__ = ["TorchModule"]


@dataclass(frozen=True, eq=False)
class _AsGiven:
    """Initializer of a parameter that has its values already."""

    values: npt.NDArray[np.float32]

    def make(self, shape: tuple[int, ...], generator: np.random.Generator) -> npt.NDArray[np.float32]:
        return self.values


@dataclass(frozen=True, eq=False)
class TorchModule:
    """Runs in the modes `torch`, `torch-graph` and `torch-compile`; others refuse it when they are built.

    It runs as after `module.eval()`: without dropout, and buffers stay as they are. One that learns running statistics (batch
    normalization) is refused, since nothing would move them.

    Attributes:
        module: takes float or integer tensors, and gives one tensor.
    """

    module: nn.Module

    acting_mode: ClassVar[str] = "torch"

    def __post_init__(self) -> None:
        for name, part in self.module.named_modules():
            if getattr(part, "track_running_stats", False):
                raise ConfigError(
                    f"TorchModule: {name or 'the module'} ({type(part).__name__}) keeps running statistics, which nothing would "
                    "update; use LayerNorm or GroupNorm, or track_running_stats=False"
                )

    @api
    def output(self, scope: Scope, *inputs: Array, **named: Array) -> Array:
        """What the module gives for `inputs`, as float32; those that a space feeds by name come last, in the order of the spaces."""
        inputs = (*inputs, *named.values())
        parameters = {
            name: scope.parameter(name, tuple(parameter.shape), _AsGiven(parameter.detach().to("cpu", torch.float32).numpy()))
            for name, parameter in self._module.named_parameters()
        }
        if scope.declaration is not None:  # the shape pass has NumPy zeros
            given = {name: torch.from_numpy(array) for name, array in parameters.items()}
            with torch.no_grad():
                return self._call(given, [torch.from_numpy(np.asarray(x)) for x in inputs], mixed=False).numpy()
        ops = scope.ops
        if not isinstance(ops, TorchOps):
            raise UnsupportedOp("a torch.nn.Module needs one of the modes torch, torch-graph and torch-compile; use mode 'torch'")
        return self._call(parameters, inputs, mixed=ops.mixed)

    def _call(self, parameters: Any, inputs: Any, *, mixed: bool) -> torch.Tensor:
        with torch.autocast(inputs[0].device.type, torch.bfloat16, enabled=mixed):
            found: torch.Tensor = torch.func.functional_call(self._module, parameters, tuple(inputs))
        return found.to(torch.float32)

    @cached_property
    def _module(self) -> nn.Module:
        return copy.deepcopy(self.module).eval()
