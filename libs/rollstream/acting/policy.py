"""The policy as an actor uses it: weights in, rows' columns out, no gradient framework in the process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from rollstream.graph import Acting, FlatLayout, index_to_value
from rollstream.spaces import Column, Columns, Leaf

__all__ = ["SCALAR_PREFIX", "Policy", "WeightSource", "Weights"]

SCALAR_PREFIX = "scalar."
"""Published tensors with this prefix are settings of acting that change over time (epsilon), not parameters."""


class Weights(Protocol):
    """One published set of weights."""

    @property
    def version(self) -> int: ...

    @property
    def tensors(self) -> Mapping[str, npt.NDArray[Any]]: ...


class WeightSource(Protocol):
    """Where an actor pulls weights from."""

    def fetch_if_newer(self, than: int) -> Weights | None:
        """The newest weights, or None when their version is `than`."""
        ...


class Policy:
    """Acts in N environments at once with the weights loaded last.

    Args:
        layout: parameters of the policy, by which published tensors become one flat vector.
        acting: the policy's executable.
        action: the action leaf; the executable counts choices from 0, the environment from the leaf's start.
        extra: columns that the algorithm adds to rows (`log_prob`, `value`); the executable returns them by name.
        generator: where random actions come from.
    """

    def __init__(
        self,
        *,
        layout: FlatLayout,
        acting: Acting,
        action: Leaf,
        extra: Sequence[Column],
        generator: np.random.Generator,
    ) -> None:
        self.version = 0
        self._layout = layout
        self._acting = acting
        self._action = action
        self._extra = tuple(extra)
        self._generator = generator
        self._scalars: dict[str, float] = {}

    def load(self, weights: Weights) -> None:
        """Act with `weights` from now on; non-finite ones are refused (`NonFiniteError`) and the old ones stay."""
        parameters = {name: tensor for name, tensor in weights.tensors.items() if not name.startswith(SCALAR_PREFIX)}
        flat = self._layout.join(parameters)
        self._layout.require_finite(flat)
        self._acting.load(flat)
        self._scalars = {
            name.removeprefix(SCALAR_PREFIX): float(tensor.reshape(-1)[0])
            for name, tensor in weights.tensors.items()
            if name.startswith(SCALAR_PREFIX)
        }
        self.version = weights.version

    def act(self, observation: Columns) -> Columns:
        """Sampled actions and the extra columns, [N, ...]."""
        out = self._acting.act(observation, self._generator, **self._scalars)
        columns: dict[str, npt.NDArray[Any]] = {self._action.name: index_to_value(self._action, out["action"])}
        for column in self._extra:
            columns[column.name] = out[column.name]
        return columns

    def greedy(self, observation: Columns) -> Columns:
        """The most probable (or most valuable) actions [N]."""
        return {self._action.name: index_to_value(self._action, self._acting.greedy(observation))}

    def values(self, observation: Columns) -> npt.NDArray[np.float32]:
        """Values [N] of observations."""
        return self._acting.values(observation)
