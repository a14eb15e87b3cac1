"""From an `EnvironmentSpec` to N copies stepped as a batch.

    id                     vectorization auto means
    CartPole-v1            the registered vector entry point if there is one (an order of magnitude faster), else plain copies
    envpool:Name           EnvPool
    package.module:name    the callable's own vector environment if it takes `num_envs`, else plain copies one after another
    pettingzoo:mpe.Name    a PettingZoo parallel environment; what an entry point builds may be one too

Plain copies are stepped one after another without a vectorizer of Gymnasium's, also where `sync` is asked for.

Gymnasium is imported when an environment is made, not before.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from rollstream.clock import Clock, SystemClock
from rollstream.config import EnvironmentSpec
from rollstream.envs.bounds import BoundedEnvironment
from rollstream.envs.entry_point import ENVPOOL_PREFIX, import_named, is_entry_point, require_allowed, resolve
from rollstream.envs.envpool import make_envpool
from rollstream.envs.faults import USER_ERRORS, environment_fault
from rollstream.envs.gymnasium_vector import GymnasiumVector, InProcess, autoreset_mode
from rollstream.envs.multi_agent import ParallelEnvironments, is_parallel
from rollstream.envs.multi_agent.pettingzoo import PETTINGZOO_PREFIX, pettingzoo_builder
from rollstream.envs.registry import registered
from rollstream.envs.sequential import SequentialEnvironments
from rollstream.envs.vector_environment import VectorEnvironment, environment_seeds
from rollstream.errors import ConfigError, EnvironmentFault, RollstreamError

if TYPE_CHECKING:
    import gymnasium

__all__ = ["make_environment"]

AUTORESET_VALUES = {"auto": "NextStep", "next_step": "NextStep", "same_step": "SameStep", "disabled": "Disabled"}


def make_environment(
    spec: EnvironmentSpec,
    *,
    envs: int,
    seed: int,
    allow: Sequence[str] = (),
    reset_options: Mapping[str, Any] | None = None,
    step_deadline_s: float = 300.0,
    clock: Clock | None = None,
) -> VectorEnvironment:
    """Build `envs` copies of the environment that `spec` names.

    Args:
        seed: copy i is seeded by a number that depends on this and i alone; give each actor a seed of its own.
        allow: modules whose entry points may be imported.
        reset_options: Gymnasium's reset options, honoured at every reset where the vectorizer makes that possible
            (always, except for resets inside of a vector entry point and EnvPool).
        step_deadline_s: how long one step of `async` workers may take. 300 s outlasts any simulator that is alive.

    Raises:
        ConfigError: unknown id, module not allowed, missing package, arguments or modes that do not fit.
        SpaceError: a space that cannot be stored.
        EnvironmentFault: the environment raised while it was built.
    """
    if not isinstance(spec, EnvironmentSpec):
        raise ConfigError(
            f"an environment is named, not passed: got an instance of {type(spec).__name__}; give an EnvironmentSpec "
            "with a Gymnasium id or package.module:callable, each actor builds its own copies"
        )
    request = Request(
        spec=spec,
        seeds=tuple(environment_seeds(seed, envs=envs)),
        seed=seed,
        options=dict(reset_options or {}),
        allow=tuple(allow),
        step_deadline_s=step_deadline_s,
        clock=clock or SystemClock(),
    )
    import gymnasium

    try:
        environment = _made(request)
    except RollstreamError:
        raise
    except (TypeError, gymnasium.error.Error) as error:
        raise ConfigError(f"environment {spec.id!r} cannot be built with kwargs {spec.kwargs}: {error}") from error
    except USER_ERRORS as error:
        raise environment_fault(spec.id, "its constructor", error) from error
    return environment if spec.out_of_bounds == "ignore" else BoundedEnvironment(environment, out_of_bounds=spec.out_of_bounds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What `make_environment` was asked for, with the seeds of the copies."""

    spec: EnvironmentSpec
    seeds: tuple[int, ...]
    seed: int
    options: Mapping[str, Any]
    allow: tuple[str, ...]
    step_deadline_s: float
    clock: Clock


def _made(request: Request) -> VectorEnvironment:
    spec = request.spec
    if spec.id.startswith(ENVPOOL_PREFIX):
        return make_envpool(spec, seeds=request.seeds)
    if spec.id.startswith(PETTINGZOO_PREFIX):
        return _parallel(request, partial(pettingzoo_builder(spec.id), **spec.kwargs))
    return _from_entry_point(request) if is_entry_point(spec.id) else _from_registry(request)


def _from_registry(request: Request) -> VectorEnvironment:
    import gymnasium

    spec = request.spec
    if ":" in spec.id:
        require_allowed(spec.id, allow=request.allow)
        import_named(spec.id)
    entry = registered(spec.id)
    limit = {} if spec.max_episode_steps is None else {"max_episode_steps": spec.max_episode_steps}
    arguments: dict[str, Any] = {**spec.kwargs, **limit}
    own = entry.vector_entry_point is not None and not entry.additional_wrappers
    if spec.vectorization == "vector_entry_point" and not own:
        raise ConfigError(
            f"environment {spec.id!r} has no vector form of its own; set environment.vectorization to auto, sync or async"
        )
    if own and spec.vectorization in ("auto", "vector_entry_point"):
        vector = gymnasium.make_vec(entry.id, num_envs=len(request.seeds), vectorization_mode="vector_entry_point", **arguments)
        declared = getattr(vector.metadata.get("autoreset_mode"), "value", None)
        if spec.vectorization != "auto" or spec.autoreset == "auto" or AUTORESET_VALUES[spec.autoreset] == declared:
            return _wrapped(request, vector, seed=request.seeds[0])
        vector.close()
    if _one_after_another(spec):
        return _sequential(request, partial(gymnasium.make, entry.id, disable_env_checker=True, **arguments))

    from rollstream.envs.guarded import GuardedEnvironment

    def build(kind: str, options: dict[str, Any]) -> gymnasium.vector.VectorEnv[Any, Any, Any]:
        return gymnasium.make_vec(
            entry.id,
            num_envs=len(request.seeds),
            vectorization_mode=kind,
            vector_kwargs=options,
            wrappers=[partial(GuardedEnvironment, options=request.options)],
            disable_env_checker=True,  # it checks the first step only; GuardedEnvironment checks every one
            **arguments,
        )

    return _vectorized(request, build)


def _from_entry_point(request: Request) -> VectorEnvironment:
    import gymnasium

    spec = request.spec
    function = resolve(spec.id, allow=request.allow)
    if "num_envs" in inspect.signature(function).parameters:
        if spec.vectorization not in ("auto", "vector_entry_point") or spec.max_episode_steps is not None:
            raise ConfigError(
                f"environment {spec.id!r} takes num_envs, so it batches and limits episodes itself; set "
                "environment.vectorization to auto and give limits in environment.kwargs"
            )
        return _wrapped(request, function(num_envs=len(request.seeds), **spec.kwargs), seed=request.seeds[0])
    if spec.vectorization == "vector_entry_point":
        raise ConfigError(
            f"environment {spec.id!r} has no vector form of its own: it takes no num_envs; set "
            "environment.vectorization to auto, sync or async"
        )
    builder = EntryPointBuilder(id=spec.id, kwargs=spec.kwargs, max_episode_steps=spec.max_episode_steps, allow=request.allow)
    if _one_after_another(spec):
        first = function(**spec.kwargs)
        if is_parallel(first):
            return _parallel(request, Built(first, partial(function, **spec.kwargs)))
        return _sequential(request, Built(builder.checked(first), builder))
    guarded = replace(builder, guard=True, options=request.options)

    def build(kind: str, options: dict[str, Any]) -> gymnasium.vector.VectorEnv[Any, Any, Any]:
        builders = [guarded] * len(request.seeds)
        if kind == "async":
            return gymnasium.vector.AsyncVectorEnv(builders, **options)
        return gymnasium.vector.SyncVectorEnv(builders, **options)

    return _vectorized(request, build)


def _one_after_another(spec: EnvironmentSpec) -> bool:
    """Whether nothing is asked for that takes one of Gymnasium's vectorizers, which cost more than stepping the copies."""
    return spec.vectorization in ("auto", "sync") and spec.autoreset == "auto"


def _sequential(request: Request, build: Callable[[], gymnasium.Env[Any, Any]]) -> VectorEnvironment:
    return SequentialEnvironments(build, name=request.spec.id, seeds=request.seeds, options=request.options)


def _parallel(request: Request, build: Callable[[], Any]) -> VectorEnvironment:
    spec = request.spec
    changed = [name for name in ("vectorization", "autoreset") if getattr(spec, name) != "auto"]
    changed += ["out_of_bounds"] if spec.out_of_bounds != "ignore" else []
    if changed:
        raise ConfigError(
            f"environment {spec.id!r} has several agents; environment.{changed[0]} does nothing there: leave it out"
        )
    limit = spec.max_episode_steps
    return ParallelEnvironments(build, name=spec.id, seeds=request.seeds, options=request.options, max_episode_steps=limit)


class Built:
    """Gives `first`, which was built to look at it, and then what `build` makes."""

    def __init__(self, first: Any, build: Callable[[], Any]) -> None:
        self._first = [first]
        self._build = build

    def __call__(self) -> Any:
        return self._first.pop() if self._first else self._build()


@dataclass(frozen=True, kw_only=True)
class EntryPointBuilder:
    """Builds one copy by its import path; only names cross to a worker process, never an environment."""

    id: str
    kwargs: Mapping[str, Any]
    max_episode_steps: int | None
    allow: tuple[str, ...]
    guard: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self) -> gymnasium.Env[Any, Any]:
        return self.checked(resolve(self.id, allow=self.allow)(**self.kwargs))

    def checked(self, environment: Any) -> gymnasium.Env[Any, Any]:
        """What the callable built, with what the spec puts around it."""
        import gymnasium

        if is_parallel(environment):
            raise ConfigError(
                f"environment {self.id!r} has several agents, whose copies are stepped one after another; leave "
                "environment.vectorization and environment.autoreset at auto"
            )
        if not isinstance(environment, gymnasium.Env):
            raise ConfigError(
                f"environment {self.id!r} built a {type(environment).__name__}; it must build a gymnasium.Env, or take "
                "num_envs and build a gymnasium.vector.VectorEnv"
            )
        if self.max_episode_steps is not None:
            environment = gymnasium.wrappers.TimeLimit(environment, max_episode_steps=self.max_episode_steps)
        if self.guard:
            from rollstream.envs.guarded import GuardedEnvironment

            environment = GuardedEnvironment(environment, options=self.options)
        return environment  # type: ignore[no-any-return]


def _vectorized(
    request: Request, build: Callable[[str, dict[str, Any]], gymnasium.vector.VectorEnv[Any, Any, Any]]
) -> VectorEnvironment:
    """`build` as sync or async vector environment in the autoreset mode that the spec asks for."""
    from gymnasium.vector import AutoresetMode

    mode = AutoresetMode(AUTORESET_VALUES[request.spec.autoreset])
    if request.spec.vectorization != "async":
        return _wrapped(request, build("sync", {"autoreset_mode": mode, "copy": False}), seed=list(request.seeds))

    from rollstream.envs.async_workers import AsyncWorkers

    try:
        workers = AsyncWorkers(
            lambda options: build("async", {"autoreset_mode": mode, **options}),  # type: ignore[arg-type,return-value]
            clock=request.clock,
            deadline_s=request.step_deadline_s,
        )
    except EnvironmentFault as fault:
        raise environment_fault(request.spec.id, "its constructor", fault) from fault.__cause__
    return _wrapped(request, workers.vector, seed=list(request.seeds), simulator=workers)


def _wrapped(request: Request, vector: Any, *, seed: int | list[int], simulator: Any | None = None) -> GymnasiumVector:
    import gymnasium

    name = request.spec.id
    if not isinstance(vector, gymnasium.vector.VectorEnv) or vector.num_envs != len(request.seeds):
        raise ConfigError(
            f"environment {name!r} built a {type(vector).__name__} of {getattr(vector, 'num_envs', 'no')} copies; "
            f"it must build a gymnasium.vector.VectorEnv of {len(request.seeds)}"
        )
    simulator = simulator or InProcess(vector, name=name)
    try:
        return GymnasiumVector(
            simulator,
            name=name,
            envs=len(request.seeds),
            spaces=(vector.single_observation_space, vector.single_action_space),
            mode=autoreset_mode(vector.metadata, name=name, wanted=request.spec.autoreset),
            seed=seed,
            options=request.options,
        )
    except BaseException:
        simulator.close(timeout_s=5.0)
        raise
