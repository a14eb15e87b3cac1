"""Policies that control acts with when it is asked to: those of running experiments, with their newest weights, no torch.

    request ─▶ leaves of the environment (looked at once) ─▶ columns ─▶ rollstream.acting.Policy ─▶ actions as JSON
                                                                           ▲ newest published weights, checked at each request

It is the same class that evaluation acts with, so preprocessing, normalizer and action scaling cannot differ from it. Executables take
a fixed number of rows; a request takes those of the next power of two, and its rows are repeated to fill them.
"""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from rollstream.acting import Policy
from rollstream.algorithms import make_agent
from rollstream.algorithms.agent import Agent
from rollstream.algorithms.policies import make_policy
from rollstream.config import EnvironmentSpec, ExperimentSpec
from rollstream.errors import EnvironmentFault
from rollstream.seeding import child_generator
from rollstream.spaces import Columns, Leaf, columns_from_json, json_from_columns
from rollstream.store import Store
from rollstream.weights import WeightStore
from rollstream_control.failure import Failure
from rollstream_control.submission.validation import Inspected

__all__ = ["MAX_OBSERVATIONS", "Acted", "Asked", "ServedPolicies"]

Value = TypeVar("Value")

MAX_OBSERVATIONS = 1_024
"""Most observations of one request."""
KEPT = 16
"""Policies (one for each experiment and power of two) and agents that stay in memory; the one unused longest goes first."""
MEMORY = "recurrent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What somebody wants to know.

    Attributes:
        observations: by the path under which a problem with one is told.
        states: what a recurrent policy remembers, by path, as `Acted.states` gave it; None: episodes begin.
        seed: of the sampled actions; None: any.
    """

    observations: Mapping[str, Any]
    states: Mapping[str, Any] | None
    deterministic: bool
    seed: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Acted:
    """Actions in the environment's own form, one for each observation; `states` of a recurrent policy, else None."""

    actions: list[Any]
    states: list[Any] | None
    version: int
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """An experiment's agent and spaces."""

    agent: Agent
    observation: tuple[Leaf, ...]
    memory: tuple[Leaf, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Served:
    policy: Policy
    generator: np.random.Generator
    lock: threading.Lock = field(default_factory=threading.Lock)


class ServedPolicies:
    """Thread-safe.

    Args:
        inspect: the spaces of an environment; None when it cannot be known here.
        make: the agent of an algorithm, as `rollstream.algorithms.make_agent`.
        draw: a seed for a request that has none.
    """

    def __init__(
        self,
        store: Store,
        *,
        inspect: Callable[[EnvironmentSpec], Inspected | None],
        make: Callable[..., Agent] = make_agent,
        draw: Callable[[], int] = lambda: secrets.randbits(53),
    ) -> None:
        self._store = store
        self._inspect = inspect
        self._make = make
        self._draw = draw
        self._lock = threading.Lock()
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._served: OrderedDict[tuple[str, int], _Served] = OrderedDict()

    def act(self, experiment: str, spec: ExperimentSpec, asked: Asked) -> Acted:
        """Actions of the experiment's policy.

        Raises:
            ConfigError: an observation or state does not have the form of its space; lists every bad field.
            Failure: 409, there are no weights or no spaces to act with; 422, an action mask that forbids everything.
        """
        known = self._cached(self._known, experiment, lambda: self._learn_of(spec))
        columns = columns_from_json(known.observation, "observation", asked.observations)
        states = self._states(known, asked)
        rows = len(asked.observations)
        batch = 1 << (rows - 1).bit_length()
        served = self._cached(self._served, (experiment, batch), lambda: _serve(known.agent, batch))
        seed = self._draw() if asked.seed is None else asked.seed
        with served.lock:
            self._renew(served.policy, experiment)
            served.generator.bit_generator.state = child_generator(seed, "act").bit_generator.state
            out = _run(served.policy, columns, states, batch=batch, deterministic=asked.deterministic)
            memory = {name: state[:rows].copy() for name, state in served.policy.memory.items()}
            version = served.policy.version
        return Acted(
            actions=json_from_columns(known.agent.actions, "action", {name: column[:rows] for name, column in out.items()}),
            states=json_from_columns(known.memory, MEMORY, memory) if known.memory else None,
            version=version,
            seed=seed,
        )

    def _states(self, known: _Known, asked: Asked) -> Columns | None:
        if asked.states is None:
            return None
        if not known.memory:
            raise Failure("this policy remembers nothing: leave the state out", status=422, kind="invalid")
        return columns_from_json(known.memory, MEMORY, asked.states)

    def _learn_of(self, spec: ExperimentSpec) -> _Known:
        inspected = self._inspect(spec.environment)
        if inspected is None:
            raise Failure(
                f"the package of environment {spec.environment.id!r} is not installed where control runs, so its spaces are not "
                "known here; install it there, or export the policy",
                status=409,
                kind="no-spaces",
            )
        observation = inspected.observation_leaves
        agent = self._make(spec.algorithm, spec.settings, observation=observation, actions=inspected.action_leaves)
        memory = [column for column in agent.extra_columns if column.name.startswith(f"{MEMORY}.")]
        return _Known(
            agent=agent,
            observation=observation,
            memory=tuple(Leaf(name=column.name, kind="box", dtype=column.dtype, shape=column.shape) for column in memory),
        )

    def _renew(self, policy: Policy, experiment: str) -> None:
        newer = WeightStore(self._store, experiment=experiment).fetch_if_newer(policy.version)
        if newer is not None:
            policy.load(newer)
        elif policy.version == 0:
            raise Failure(
                f"experiment {experiment} has no weights to act with: its learner publishes the first when it begins",
                status=409,
                kind="no-weights",
            )

    def _cached(self, cache: OrderedDict[Any, Value], key: Any, make: Callable[[], Value]) -> Value:
        with self._lock:
            found = cache.get(key)
            if found is not None:
                cache.move_to_end(key)
                return found
        made = make()
        with self._lock:
            made = cache.setdefault(key, made)
            while len(cache) > KEPT:
                cache.popitem(last=False)
        return made


def _serve(agent: Agent, batch: int) -> _Served:
    generator = child_generator(0, "act")
    policy = make_policy(agent, envs=batch, generator=generator)
    return _Served(policy=policy, generator=generator)


def _run(policy: Policy, observation: Columns, states: Columns | None, *, batch: int, deterministic: bool) -> Columns:
    for name, memory in policy.memory.items():
        memory[...] = 0 if states is None else _filled(states[name], batch)
    policy.begin(first=np.full(batch, states is None), over=np.zeros(batch, np.bool_))
    columns = {name: _filled(column, batch) for name, column in observation.items()}
    try:
        return policy.greedy(columns) if deterministic else policy.act(columns)
    except EnvironmentFault as fault:
        raise Failure(str(fault), status=422, kind="invalid") from fault


def _filled(column: Any, batch: int) -> Any:
    return np.resize(column, (batch, *column.shape[1:]))
