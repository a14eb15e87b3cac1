"""What a batch of environments looks like to the collector, whatever simulates it.

Two conventions remain of the many that simulators have. With `resets_on_next_step` the step after an episode's end returns the
first observation of the next one and ignores its action (Gymnasium's NEXT_STEP, EnvPool). Without, the step that ends an episode
already returns the first observation of the next, and the final one comes beside it (SAME_STEP, DISABLED, plain environments).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from rollstream.seeding import child_seed
from rollstream.spaces import Columns, Leaf

__all__ = ["FinalObservations", "Step", "VectorEnvironment", "environment_seeds"]

SEED_BITS = 31


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalObservations:
    """Last observations of the episodes that ended in a step: K environments (ascending), columns [K, ...]."""

    environments: npt.NDArray[np.int64]
    observation: Columns


@dataclass(slots=True, kw_only=True)
class Step:
    """What one vector step returned. Arrays may be reused by the next step: copy what must stay.

    Not frozen, since making a frozen one takes a microsecond more and one is made in every step.

    Attributes:
        observation: columns [N, ...], what the policy acts on next.
        reward: [N].
        terminated, truncated: bool [N]; both may be true.
        final: final observations, if episodes ended and `resets_on_next_step` is false; None otherwise.
    """

    observation: Columns
    reward: npt.NDArray[Any]
    terminated: npt.NDArray[np.bool_]
    truncated: npt.NDArray[np.bool_]
    final: FinalObservations | None = None


class VectorEnvironment(Protocol):
    """N copies of one environment, stepped as a batch.

    Attributes:
        name: the id under which it was asked for; stands in every fault.
        envs: number of copies, N.
        observation_leaves, action_leaves: columns of one copy.
        resets_on_next_step: which convention holds at an episode's end, see above.
    """

    name: str
    envs: int
    observation_leaves: tuple[Leaf, ...]
    action_leaves: tuple[Leaf, ...]
    resets_on_next_step: bool

    def reset(self, options: Mapping[str, Any] | None = None) -> Columns:
        """Start every copy; first observations [N, ...]. Called before the first step; called again, it begins new episodes
        (other ones: only the first call is seeded).

        Args:
            options: reset options from now on, beside those of the spec; None leaves them.
        """
        ...

    def step(self, actions: Columns) -> Step:
        """Act in every copy; `actions` are columns [N, ...] named like `action_leaves`."""
        ...

    def close(self, *, timeout_s: float = 5.0) -> None:
        """Free everything; closes the user's environment exactly once and waits for it no longer than `timeout_s`."""
        ...


def environment_seeds(seed: int, *, envs: int) -> Sequence[int]:
    """Distinct seeds, one for each copy: copy i's depends on `seed` and i alone. 31 bits, which every simulator accepts."""
    found: list[int] = []
    taken: set[int] = set()
    for index in range(envs):
        attempt = 0
        value = child_seed(seed, "environment", index) & ((1 << SEED_BITS) - 1)
        while value in taken:
            attempt += 1
            value = child_seed(seed, "environment", index, attempt) & ((1 << SEED_BITS) - 1)
        taken.add(value)
        found.append(value)
    return found
