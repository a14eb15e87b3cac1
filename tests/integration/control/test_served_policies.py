"""Policies that answer requests: what recurrent ones remember, masks, and how many are kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from rollstream.acting import Policy
from rollstream.config import EnvironmentSpec, ExperimentSpec
from rollstream.graph import ActorCriticPolicy, build_acting, declare
from rollstream.seeding import child_generator
from rollstream.spaces import Column, Leaf, leaves
from rollstream.store import Store
from rollstream.weights import WeightStore
from rollstream_control.failure import Failure
from rollstream_control.served_policies import KEPT, Asked, ServedPolicies

SPEC = ExperimentSpec(name="toy", algorithm="ppo", environment=EnvironmentSpec(id="Toy-v0"))
VECTOR = spaces.Box(-1.0, 1.0, (3,))
MASKED = spaces.Dict({"x": VECTOR, "action_mask": spaces.MultiBinary(4)})


@dataclass(frozen=True)
class Inspected:
    """Spaces of an environment."""

    observation_leaves: tuple[Leaf, ...]
    action_leaves: tuple[Leaf, ...]


@dataclass(frozen=True)
class ToyAgent:
    """As much of an agent as acts."""

    policy: ActorCriticPolicy

    @property
    def actions(self) -> tuple[Leaf, ...]:
        return self.policy.actions

    @property
    def extra_columns(self) -> tuple[Column, ...]:
        return self.policy.extra_columns


class Looked:
    """Looks at the environment, and counts how often."""

    def __init__(self, space: Any) -> None:
        self.times = 0
        self._space = space

    def __call__(self, spec: EnvironmentSpec) -> Inspected:
        self.times += 1
        return Inspected(leaves(self._space, "observation"), leaves(spaces.Discrete(4), "action"))


def _agent(**settings: Any) -> Callable[..., ToyAgent]:
    def make(name: str, given: Any, *, observation: tuple[Leaf, ...], actions: tuple[Leaf, ...]) -> ToyAgent:
        return ToyAgent(ActorCriticPolicy(observation, actions, **settings))

    return make


def _publish(store: Store, experiment: str, space: Any, **settings: Any) -> ActorCriticPolicy:
    policy = ActorCriticPolicy(leaves(space, "observation"), leaves(spaces.Discrete(4), "action"), **settings)
    declared = declare(policy)
    flat = declared.layout.init(0) + np.random.default_rng(0).normal(0, 0.5, declared.layout.size).astype(np.float32)
    WeightStore(store, experiment=experiment).publish(1, declared.layout.split(flat))
    return policy


def _asked(observations: list[Any], states: list[Any] | None = None, **more: Any) -> Asked:
    return Asked(
        observations={f"observations.{at}": value for at, value in enumerate(observations)},
        states=None if states is None else {f"states.{at}": value for at, value in enumerate(states)},
        **{"deterministic": True, "seed": 0, **more},
    )


@pytest.mark.parametrize("recurrent", ["lstm", "gru"])
@pytest.mark.parametrize("deterministic", [True, False])
def test_a_recurrent_policy_goes_on_where_the_state_says(store: Store, recurrent: Any, deterministic: bool) -> None:
    policy = _publish(store, "toy-00abcd", VECTOR, recurrent=recurrent)
    served = ServedPolicies(store, inspect=Looked(VECTOR), make=_agent(recurrent=recurrent))
    weights = WeightStore(store, experiment="toy-00abcd").fetch()
    assert weights is not None
    generator = child_generator(0, "act")
    acting = build_acting(policy, batch=2)
    used = Policy(acting=acting, actions=policy.actions, extra=policy.extra_columns, generator=generator)
    used.load(weights)
    episode = np.random.default_rng(1).uniform(-1, 1, (5, 2, 3)).astype(np.float32)
    states = None
    for step, seen in enumerate(episode):
        generator.bit_generator.state = child_generator(0, "act").bit_generator.state
        used.begin(first=np.full(2, step == 0), over=np.zeros(2, np.bool_))
        expected = used.greedy({"observation": seen}) if deterministic else used.act({"observation": seen})
        acted = served.act("toy-00abcd", SPEC, _asked(seen.tolist(), states, deterministic=deterministic))
        assert acted.actions == expected["action"].tolist()
        states = acted.states
        assert states is not None
        for name, memory in used.memory.items():
            np.testing.assert_allclose([state[name.removeprefix("recurrent.")] for state in states], memory, atol=1e-6)
    fresh = served.act("toy-00abcd", SPEC, _asked(episode[0].tolist(), deterministic=deterministic))
    assert fresh.states != states


def test_an_action_mask_that_forbids_everything_is_refused(store: Store) -> None:
    _publish(store, "toy-00abcd", MASKED)
    served = ServedPolicies(store, inspect=Looked(MASKED), make=_agent())
    allowed = {"x": [0.1, 0.2, 0.3], "action_mask": [0, 0, 1, 0]}
    assert served.act("toy-00abcd", SPEC, _asked([allowed])).actions == [2]
    with pytest.raises(Failure, match="forbids every choice") as caught:
        served.act("toy-00abcd", SPEC, _asked([allowed, allowed | {"action_mask": [0, 0, 0, 0]}]))
    assert caught.value.status == 422


def test_an_environment_is_looked_at_once(store: Store) -> None:
    _publish(store, "toy-00abcd", VECTOR)
    looked = Looked(VECTOR)
    served = ServedPolicies(store, inspect=looked, make=_agent())
    for rows in (1, 2, 3, 1):
        assert len(served.act("toy-00abcd", SPEC, _asked([[0.0, 0.0, 0.0]] * rows)).actions) == rows
    assert looked.times == 1


def test_the_policies_that_are_kept_are_bounded(store: Store) -> None:
    looked = Looked(VECTOR)
    served = ServedPolicies(store, inspect=looked, make=_agent())
    ids = [f"toy-{number:06x}" for number in range(KEPT + 1)]
    for experiment in ids:
        _publish(store, experiment, VECTOR)
        served.act(experiment, SPEC, _asked([[0.0, 0.0, 0.0]]))
    assert looked.times == KEPT + 1
    served.act(ids[-1], SPEC, _asked([[0.0, 0.0, 0.0]]))
    assert looked.times == KEPT + 1
    served.act(ids[0], SPEC, _asked([[0.0, 0.0, 0.0]]))  # it had to go, and is made again
    assert looked.times == KEPT + 2
