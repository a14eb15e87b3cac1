"""What losses ask of a policy. Ours fit, and so does anyone's that has these members."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from rollstream.graph.inputs import Arguments, Input
from rollstream.graph.ops import Array
from rollstream.graph.policies.evaluation import Evaluation
from rollstream.graph.scope import Scope
from rollstream.spaces import Leaf

__all__ = [
    "ActionValues",
    "Acts",
    "AtomValues",
    "DeterministicActor",
    "DiscreteSoftActor",
    "Evaluates",
    "QuantileValues",
    "SequenceValues",
    "SoftActor",
]


class Acts(Protocol):
    """Attributes:
    observation: leaves of the observation space.
    action_columns: what losses read of an action.
    """

    @property
    def observation(self) -> tuple[Leaf, ...]: ...
    @property
    def action_columns(self) -> tuple[Input, ...]: ...


class Evaluates(Acts, Protocol):
    """Judges actions: `ActorCriticPolicy`.

    Attributes:
        value: has a value head.
    """

    @property
    def value(self) -> bool: ...

    def evaluate(self, scope: Scope, *, observation: Mapping[str, Array], action: Mapping[str, Array]) -> Evaluation:
        """Log-probability, entropy and value, [B]."""
        ...


class ActionValues(Acts, Protocol):
    """Values the actions of one Discrete leaf: `QPolicy`."""

    def action_index(self, scope: Scope, action: Mapping[str, Array]) -> Array:
        """Choice 0 to A-1 of each action, int64 [B]."""
        ...

    def q_values(self, scope: Scope, *, observation: Mapping[str, Array], noisy: Array | None = None) -> Array:
        """[B, A]; far below all others where a mask forbids an action."""
        ...


class AtomValues(ActionValues, Protocol):
    """Knows how likely each of K returns is: `QPolicy` with distribution `c51`.

    Attributes:
        support: the returns, in equal steps, float32 [K].
    """

    @property
    def support(self) -> npt.NDArray[np.float32]: ...

    def q_log_probs(self, scope: Scope, *, observation: Mapping[str, Array], noisy: Array | None = None) -> Array:
        """Log-probability of each return after each action, [B, A, K]."""
        ...


class QuantileValues(ActionValues, Protocol):
    """Knows K quantiles of the return, at (k + 1/2) / K: `QPolicy` with distribution `quantile`."""

    def q_quantiles(self, scope: Scope, *, observation: Mapping[str, Array], noisy: Array | None = None) -> Array:
        """[B, A, K]."""
        ...


class SequenceValues(Acts, Protocol):
    """Values the actions of one Discrete leaf by what was seen before: `RecurrentQPolicy`."""

    def sequence_arguments(self, *, steps: int) -> Arguments:
        """What `q_sequence` takes, for rows of `steps` steps each."""
        ...

    def action_index(self, scope: Scope, action: Mapping[str, Array]) -> Array:
        """Choice 0 to A-1 of each action, int64, of the same shape."""
        ...

    def q_sequence(self, scope: Scope, *, observation: Mapping[str, Array], recurrent: Mapping[str, Array], first: Array) -> Any:
        """`output` [B, T, A] and `state` [B, S]."""
        ...


class _Critics(Acts, Protocol):
    """Attributes:
    noise: what the actor draws with.
    """

    @property
    def noise(self) -> tuple[Input, ...]: ...

    def q_values(self, scope: Scope, *, observation: Mapping[str, Array], action: Mapping[str, Array]) -> tuple[Array, Array]:
        """Two estimates of the value of an action, [B] each."""
        ...


class SoftActor(_Critics, Protocol):
    """A stochastic actor, twin critics and a temperature: `SoftActorCritic`."""

    def sample(self, scope: Scope, *, observation: Mapping[str, Array], noise: Mapping[str, Array]) -> Any:
        """(actions by column, log-probability [B]); gradients flow through both."""
        ...

    def log_alpha(self, scope: Scope) -> Array:
        """Logarithm of the temperature, a parameter [1]."""
        ...


class DiscreteSoftActor(Acts, Protocol):
    """A stochastic actor over A choices, twin critics that value them all, and a temperature: `DiscreteSoftActorCritic`."""

    def action_index(self, scope: Scope, action: Mapping[str, Array]) -> Array:
        """Choice 0 to A-1 of each action, int64 [B]."""
        ...

    def log_probs(self, scope: Scope, *, observation: Mapping[str, Array]) -> Array:
        """Log-probability of each choice, [B, A]; gradients flow through."""
        ...

    def q_values(self, scope: Scope, *, observation: Mapping[str, Array]) -> tuple[Array, Array]:
        """Two estimates of the value of each choice, [B, A] each."""
        ...

    def log_alpha(self, scope: Scope) -> Array:
        """Logarithm of the temperature, a parameter [1]."""
        ...


class DeterministicActor(_Critics, Protocol):
    """A deterministic actor and twin critics: `DeterministicActorCritic`."""

    def greedy(self, scope: Scope, *, observation: Mapping[str, Array]) -> dict[str, Array]:
        """Actions by column; gradients flow through."""
        ...

    def perturbed(
        self,
        scope: Scope,
        *,
        observation: Mapping[str, Array],
        noise: Mapping[str, Array],
        scale: Array | float,
        limit: Array | float | None = None,
    ) -> dict[str, Array]:
        """The same plus `scale` times `noise`, cut at `limit`, inside the bounds."""
        ...
