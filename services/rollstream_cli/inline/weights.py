"""Weights that pass from the learner to the actors of the same process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.algorithms.evaluation import LocalWeights

__all__ = ["WeightBoard"]


class WeightBoard:
    """The newest weights. Tensors are copied when published: the learner's arrays go on changing."""

    def __init__(self) -> None:
        self._newest = LocalWeights(version=0, tensors={})

    def publish(self, version: int, tensors: Mapping[str, npt.NDArray[np.float32]]) -> None:
        """Show these from now on."""
        copies: dict[str, npt.NDArray[Any]] = {name: np.array(tensor) for name, tensor in tensors.items()}
        self._newest = LocalWeights(version=version, tensors=copies)

    def fetch_if_newer(self, than: int) -> LocalWeights | None:
        """The newest weights, or None when their version is `than`."""
        return self._newest if self._newest.version > than else None
