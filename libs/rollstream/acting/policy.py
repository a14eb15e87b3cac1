"""The policy as an actor uses it: weights in, rows' columns out, no gradient framework in the process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from rollstream.graph import Acting, index_to_value
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
        acting: the policy's executable, made for N environments.
        action: the action leaf; the executable counts choices from 0, the environment from the leaf's start.
        extra: columns that the algorithm adds to rows (`log_prob`, `value`); the executable returns them by name.
        generator: where random actions come from.
    """

    def __init__(
        self,
        *,
        acting: Acting,
        action: Leaf,
        extra: Sequence[Column],
        generator: np.random.Generator,
    ) -> None:
        self.version = 0
        self._acting = acting
        self._action = action
        self._extra = tuple(extra)
        self._generator = generator
        self._scalars: dict[str, float] = {}

    def load(self, weights: Weights) -> None:
        """Act with `weights` from now on; non-finite ones are refused (`NonFiniteError`) and the old ones stay."""
        parameters = {name: tensor for name, tensor in weights.tensors.items() if not name.startswith(SCALAR_PREFIX)}
        self._acting.load_tensors(parameters)
        self._scalars = {
            name.removeprefix(SCALAR_PREFIX): float(tensor.reshape(-1)[0])
            for name, tensor in weights.tensors.items()
            if name.startswith(SCALAR_PREFIX)
        }
        self.version = weights.version

    def act(self, observation: Columns) -> Columns:
        """Sampled actions and the extra columns, [N, ...]; also for fewer than N rows (final observations)."""
        rows = len(next(iter(observation.values())))
        if rows < self._acting.batch:
            observation = {
                name: np.resize(column, (self._acting.batch, *column.shape[1:])) for name, column in observation.items()
            }
        out = self._acting.act(observation, self._generator, **self._scalars)
        columns: dict[str, npt.NDArray[Any]] = {self._action.name: index_to_value(self._action, out["action"][:rows])}
        for column in self._extra:
            columns[column.name] = out[column.name][:rows]
        return columns

    def greedy(self, observation: Columns) -> Columns:
        """The most probable (or most valuable) actions [N]."""
        return {self._action.name: index_to_value(self._action, self._acting.greedy(observation)["action"])}

    def values(self, observation: Columns) -> npt.NDArray[np.float32]:
        """Values [N] of observations."""
        return self._acting.values(observation)
