"""The policy as an actor uses it: weights in, rows' columns out, no gradient framework in the process.

    begin(first, over) -> act(observation) -> environment -> ... -> values(observation)      recurrent.* kept between calls

A recurrent policy's memory stays here, one row for each environment; rows get it as it was before the step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from rollstream.errors import EnvironmentFault
from rollstream.graph import Acting
from rollstream.graph.components.features import MASK
from rollstream.graph.policies.masks import unanswerable
from rollstream.graph.policies.memory import FIRST, PREFIX
from rollstream.spaces import Column, Columns, Leaf

__all__ = ["SCALAR_PREFIX", "ActorPlace", "Policy", "WeightSource", "Weights"]

SCALAR_PREFIX = "scalar."
"""Published tensors with this prefix are settings of acting that change over time (epsilon), not parameters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActorPlace:
    """Which actor of an experiment this is: number `ordinal` (from 0) of `actors` wanted; with more of them than wanted, it may be
    beyond."""

    ordinal: int
    actors: int


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
        actions: leaves of the action space; what the executable gives is cast to their dtypes here, and nowhere else.
        extra: columns that the algorithm adds to rows (`log_prob`, `value`); the executable returns them by name.
        generator: where random actions come from.
        own_settings: from the published settings of acting to those of this actor's environments, numbers or one for each [N].

    Attributes:
        version, tensors: of the weights loaded last; 0 and empty before.
    """

    def __init__(
        self,
        *,
        acting: Acting,
        actions: Sequence[Leaf],
        extra: Sequence[Column],
        generator: np.random.Generator,
        own_settings: Callable[[Mapping[str, float]], Mapping[str, Any]] | None = None,
    ) -> None:
        self.version = 0
        self._own_settings = own_settings
        self._acting = acting
        self._actions = tuple(actions)
        self._bounds = {leaf.name: _bounds(leaf) for leaf in actions if leaf.kind == "box"}
        self._dtypes = {leaf.name: np.dtype(leaf.dtype) for leaf in actions}
        self._extra = tuple(extra)
        self._generator = generator
        self.tensors: Mapping[str, npt.NDArray[Any]] = {}
        self._scalars: Mapping[str, Any] = {}
        remembered = [column for column in extra if column.name.startswith(PREFIX)]
        self._memory = {column.name: np.zeros((acting.batch, *column.shape), np.float32) for column in remembered}
        self._first = np.ones(acting.batch, np.float32)
        self._over = np.zeros(acting.batch, np.bool_)
        masks = [name for name in acting.observed if name.rpartition(".")[2] == MASK]
        self._masks = {name: _masked_by(name, self._actions, agents=len(masks) > 1) for name in masks}

    @property
    def follows_episodes(self) -> bool:
        """Whether `begin` changes anything: for a policy that remembers, or that must know where no action counts."""
        return bool(self._memory or self._masks)

    def load(self, weights: Weights) -> None:
        """Act with `weights` from now on; non-finite ones are refused (`NonFiniteError`) and the old ones stay."""
        parameters = {name: tensor for name, tensor in weights.tensors.items() if not name.startswith(SCALAR_PREFIX)}
        self._acting.load_tensors(parameters)
        scalars = {
            name.removeprefix(SCALAR_PREFIX): float(tensor.reshape(-1)[0])
            for name, tensor in weights.tensors.items()
            if name.startswith(SCALAR_PREFIX)
        }
        self._scalars = scalars if self._own_settings is None else self._own_settings(scalars)
        self.version = weights.version
        self.tensors = weights.tensors

    def begin(self, *, first: npt.NDArray[np.bool_], over: npt.NDArray[np.bool_]) -> None:
        """Where the next observation is the first of an episode (nothing is remembered there), and where it is the last."""
        self._first[...] = first
        self._over[...] = over

    @property
    def memory(self) -> Columns:
        """What a recurrent policy remembers of each copy, [N, ...] by column name, to be read and written; empty for others."""
        return self._memory

    def act(self, observation: Columns) -> Columns:
        """Sampled actions and the extra columns, [N, ...].

        Raises:
            EnvironmentFault: an action mask forbids everything where an action is needed.
        """
        if self._masks:
            self._require_answers(observation)
        before = {name: state * (1 - self._first)[:, None] for name, state in self._memory.items()} if self._memory else {}
        out = self._acting.act(self._remembering(observation), self._generator, **self._scalars)
        if self._memory:
            self._remember(out)
        columns = {leaf.name: self._cast(leaf, out[leaf.name]) for leaf in self._actions}
        for column in self._extra:
            columns[column.name] = before[column.name] if column.name in before else out[column.name]
        return columns

    def extras(self, observation: Columns) -> Columns:
        """The extra columns of observations [N, ...] that follow the last `act`, where nothing is done; it remembers nothing."""
        out = self._acting.act(self._remembering(observation), self._generator, **self._scalars)
        memory = {name: state.copy() for name, state in self._memory.items()}
        return {column.name: memory.get(column.name, out[column.name]) for column in self._extra}

    def greedy(self, observation: Columns) -> Columns:
        """The most probable (or most valuable) actions [N]."""
        self._require_answers(observation)
        out = self._acting.greedy(self._remembering(observation))
        self._remember(out)
        return {leaf.name: self._cast(leaf, out[leaf.name]) for leaf in self._actions}

    def values(self, observation: Columns) -> npt.NDArray[np.float32]:
        """Values [N] of observations; of a recurrent policy: of those that follow the last `act`. It remembers nothing."""
        return self._acting.values(self._remembering(observation))

    def _remembering(self, observation: Columns) -> Columns:
        return {**observation, **self._memory, FIRST: self._first} if self._memory else observation

    def _remember(self, out: Columns) -> None:
        for name, state in self._memory.items():
            state[...] = out[name]
        if self._memory:
            self._first[...] = 0

    def _cast(self, leaf: Leaf, value: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """As the space has it. Scaling in float32 may pass a bound by one rounding: so bounds are kept in the leaf's dtype."""
        cast = value if value.dtype == self._dtypes[leaf.name] else value.astype(leaf.dtype)
        return np.clip(cast, *self._bounds[leaf.name]) if leaf.name in self._bounds else cast

    def _require_answers(self, observation: Columns) -> None:
        for name, actions in self._masks.items():
            broken = np.flatnonzero(unanswerable(observation[name], actions) & ~self._over)
            if len(broken):
                raise EnvironmentFault(
                    f"{name} of copy {broken[0]} forbids every choice, so there is nothing to do; an environment must allow one "
                    "or end the episode"
                )


def _bounds(leaf: Leaf) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    low, high = (np.asarray(bound).astype(leaf.dtype).reshape(leaf.shape) for bound in (leaf.low, leaf.high))
    return low, high


def _masked_by(mask: str, actions: Sequence[Leaf], *, agents: bool) -> tuple[Leaf, ...]:
    """The actions of which `mask` tells: all, or those of one of several agents, which stand under its name."""
    own = mask.split(".")[1]
    return tuple(leaf for leaf in actions if not agents or leaf.name.split(".")[1:2] == [own])
