"""EnvPool: simulators in C++ threads, an optional extra. Copies are seeded one by one and stepped as one synchronous batch."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rollstream.config import EnvironmentSpec, suggestion
from rollstream.envs.closing import close_within
from rollstream.envs.entry_point import ENVPOOL_PREFIX
from rollstream.envs.faults import USER_ERRORS
from rollstream.envs.gymnasium_vector import GymnasiumVector, autoreset_mode
from rollstream.errors import ConfigError, EnvironmentFault

if TYPE_CHECKING:
    import gymnasium

__all__ = ["make_envpool"]

OURS = ("num_envs", "batch_size", "env_seed", "seed", "max_episode_steps")


def make_envpool(
    spec: EnvironmentSpec,
    *,
    seeds: Sequence[int],
    import_module: Callable[[str], Any] = importlib.import_module,
) -> GymnasiumVector:
    """`envpool:Name` as a vector environment.

    Raises:
        ConfigError: EnvPool is not installed, does not know the name, or refuses the arguments.
    """
    task = spec.id.removeprefix(ENVPOOL_PREFIX)
    try:
        envpool = import_module("envpool")
    except ImportError as error:
        raise ConfigError(
            f"environment {spec.id!r} needs EnvPool, which is not installed; pip install 'rollstream[envpool]' where "
            "actors and control run"
        ) from error
    known = envpool.list_all_envs()
    if task not in known:
        raise ConfigError(f"EnvPool has no environment {task!r}{suggestion(task, known) if _close(task, known) else ''}")
    ours = sorted(set(OURS) & set(spec.kwargs))
    if ours:
        raise ConfigError(
            f"environment.kwargs of {spec.id!r} may not set {', '.join(ours)}; these follow from the experiment's "
            "envs_per_actor, seed and environment.max_episode_steps"
        )
    arguments: dict[str, Any] = dict(spec.kwargs)
    if spec.max_episode_steps is not None:
        arguments["max_episode_steps"] = spec.max_episode_steps
    try:
        pool = envpool.make_gymnasium(task, num_envs=len(seeds), seed=list(seeds), **arguments)
    except USER_ERRORS as error:
        raise ConfigError(f"EnvPool cannot build {task!r} with {arguments}: {error}") from error
    return GymnasiumVector(
        _Pool(pool, name=spec.id),
        name=spec.id,
        envs=len(seeds),
        spaces=(pool.observation_space, pool.action_space),
        mode=autoreset_mode(pool.metadata, name=spec.id, wanted=spec.autoreset),
        seed=None,
    )


def _close(name: str, known: Sequence[str]) -> bool:
    return suggestion(name, known).startswith("; did you mean")


class _Pool:
    """The calls of an EnvPool; checks that results stand in the order of the copies."""

    def __init__(self, pool: gymnasium.vector.VectorEnv[Any, Any, Any], *, name: str) -> None:
        self._pool = pool
        self._name = name
        self._order = np.arange(pool.num_envs)

    def reset(self, *, seed: int | list[int] | None, options: dict[str, Any] | None) -> tuple[Any, dict[str, Any]]:
        return self._pool.reset(options=options)

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        result = self._pool.step(actions)
        if not np.array_equal(result[4]["env_id"], self._order):
            raise EnvironmentFault("EnvPool returned its copies out of order; do not set batch_size")
        return result

    def close(self, *, timeout_s: float) -> None:
        close_within(self._pool.close, name=self._name, timeout_s=timeout_s)
