"""An API run by torch eager under inference mode: prints and breakpoints inside a component work."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from rollstream.graph.backends.torch.ops import TorchOps
from rollstream.graph.declare import Component
from rollstream.graph.executable import empty_inputs, output_columns
from rollstream.graph.inputs import bind
from rollstream.graph.layout import FlatLayout
from rollstream.graph.scope import Parameters, Scope

__all__ = ["TorchExecutable"]


class TorchExecutable:
    """See `rollstream.graph.executable.NumpyExecutable`. Shares memory with its buffers, with `flat` and with `target`."""

    def __init__(
        self,
        component: Component,
        *,
        api: str,
        rows: int,
        layout: FlatLayout,
        flat: npt.NDArray[np.float32],
        target: npt.NDArray[np.float32] | None = None,
    ) -> None:
        arguments = component.arguments(api)
        self.inputs: Mapping[str, npt.NDArray[Any]] = empty_inputs(arguments, rows=rows)
        tensors = {name: torch.from_numpy(buffer) for name, buffer in self.inputs.items()}
        views = _tensors(layout, flat)
        others = views if target is None else _tensors(layout, target)
        self._scope = Scope(TorchOps(), Parameters(live=views, frozen=views, target=others))
        self._bound = bind(arguments, tensors)
        self._api = getattr(component, api)

    def run(self) -> Mapping[str, npt.NDArray[Any]]:
        with torch.inference_mode():
            return {name: column.numpy() for name, column in output_columns(self._api(self._scope, **self._bound)).items()}


def _tensors(layout: FlatLayout, flat: npt.NDArray[np.float32]) -> dict[str, Tensor]:
    return {name: torch.from_numpy(view) for name, view in layout.split(flat).items()}
