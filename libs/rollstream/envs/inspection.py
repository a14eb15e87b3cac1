"""What can be known about an environment without training on it: looked at once, when an experiment is submitted."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from rollstream.config import EnvironmentSpec
from rollstream.envs.entry_point import ENVPOOL_PREFIX, is_entry_point
from rollstream.envs.make import make_environment
from rollstream.envs.registry import registered
from rollstream.errors import EnvironmentFault
from rollstream.spaces import Leaf

__all__ = ["EnvironmentInfo", "inspect_environment"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentInfo:
    """Columns of one copy, and after how many environment steps an episode is truncated (None: no limit is known)."""

    observation_leaves: tuple[Leaf, ...]
    action_leaves: tuple[Leaf, ...]
    max_episode_steps: int | None


def inspect_environment(spec: EnvironmentSpec, *, allow: Sequence[str] = ()) -> EnvironmentInfo:
    """Build one copy in this process, read its spaces, close it.

    Raises:
        ConfigError, SpaceError, EnvironmentFault: as `make_environment`, for the same reasons.
    """
    if spec.vectorization == "async":
        spec = spec.model_copy(update={"vectorization": "sync"})
    environment = make_environment(spec, envs=1, seed=0, allow=allow)
    with suppress(EnvironmentFault):  # what it declares is known by now
        environment.close()
    limit = spec.max_episode_steps
    if limit is None and not spec.id.startswith(ENVPOOL_PREFIX) and not is_entry_point(spec.id):
        limit = registered(spec.id).max_episode_steps
    return EnvironmentInfo(
        observation_leaves=environment.observation_leaves,
        action_leaves=environment.action_leaves,
        max_episode_steps=limit,
    )
