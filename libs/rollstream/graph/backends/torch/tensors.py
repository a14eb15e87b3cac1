"""The arrays that an update or an executable works on, as tensors: the same memory on the CPU, copies on any other device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy.typing as npt
import torch
from torch import Tensor

from rollstream.errors import ConfigError
from rollstream.graph.layout import FlatLayout
from rollstream.graph.update_plan import UpdateState

__all__ = ["StateTensors", "require_device", "split", "to_device"]

NAMES = ("parameters", "slots", "state", "count", "target", "sums", "tally")


class StateTensors:
    """An `UpdateState` on a device; attributes as there.

    On the CPU each tensor is the array itself. Elsewhere `pull` copies tensors to the arrays, and `push` arrays to the tensors.
    """

    def __init__(self, state: UpdateState, *, device: str) -> None:
        self._shared = [torch.from_numpy(getattr(state, name)) for name in NAMES]
        self._tensors = [tensor.to(device) for tensor in self._shared]
        self.parameters, self.slots, self.state, self.count, self.target, self.sums, self.tally = self._tensors
        self._elsewhere = device != "cpu"

    def flat(self) -> list[Tensor]:
        """All, in the order of `NAMES`."""
        return list(self._tensors)

    def pull(self) -> None:
        """Arrays from tensors."""
        if self._elsewhere:
            for array, tensor in zip(self._shared, self._tensors, strict=True):
                array.copy_(tensor)

    def push(self) -> None:
        """Tensors from arrays."""
        if self._elsewhere:
            for array, tensor in zip(self._shared, self._tensors, strict=True):
                tensor.copy_(array)


def split(layout: FlatLayout, flat: Tensor) -> dict[str, Tensor]:
    """Views by name of a flat vector; no copies."""
    parts = torch.split(flat, [parameter.size for parameter in layout.parameters]) if layout.parameters else ()
    return {parameter.name: part.view(parameter.shape) for parameter, part in zip(layout.parameters, parts, strict=True)}


def to_device(arrays: Mapping[str, npt.NDArray[Any]], device: str) -> dict[str, Tensor]:
    """Arrays by name as tensors."""
    return {name: torch.from_numpy(array).to(device) for name, array in arrays.items()}


def require_device(device: str) -> None:
    """Raise `ConfigError` when torch has no such device here."""
    kind = device.partition(":")[0]
    if kind == "cpu" or (kind == "cuda" and torch.cuda.is_available()):
        return
    why = "this PyTorch sees no CUDA device" if kind == "cuda" else "known are cpu and cuda"
    raise ConfigError(f"device {device!r} cannot be used: {why}; use device 'cpu'")
