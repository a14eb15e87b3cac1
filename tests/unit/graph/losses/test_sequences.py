"""Policies on rows that are sequences."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rollstream.graph import declare
from rollstream.graph.backends.numpy_ops import NumpyOps
from rollstream.graph.inputs import sample
from rollstream.graph.losses.sequences import evaluate_steps, remembers, steps_arguments, time_major
from rollstream.graph.policies import ActorCriticPolicy
from rollstream.graph.scope import Parameters, Scope
from rollstream.spaces import Leaf


def test_steps_of_a_sequence_are_judged_as_if_each_were_a_row(box: Callable[..., Leaf], discrete: Callable[..., Leaf]) -> None:
    policy = ActorCriticPolicy((box(3),), (discrete(4),), hidden=(5,))
    layout = declare(policy).layout
    views = layout.split(layout.init(0))
    scope = Scope(NumpyOps(), Parameters(live=views, frozen=views))
    columns = sample(steps_arguments(policy, steps=3), rows=2, generator=np.random.default_rng(0))
    observation, action = columns["observation"], columns["action"]
    found = evaluate_steps(policy, scope, observation={"observation": observation}, action={"action": action})
    for t in range(3):
        one = policy.evaluate(scope, observation={"observation": observation[:, t]}, action={"action": action[:, t]})
        for name in ("log_prob", "entropy", "value"):
            np.testing.assert_allclose(getattr(found, name)[:, t], getattr(one, name), rtol=1e-6)


def test_a_policy_that_remembers_gets_what_it_remembered(box: Callable[..., Leaf], discrete: Callable[..., Leaf]) -> None:
    policy = ActorCriticPolicy((box(3),), (discrete(4),), hidden=(5,), recurrent="gru", recurrent_units=2)
    assert remembers(policy)
    assert set(steps_arguments(policy, steps=3)) == {"observation", "action", "recurrent", "first"}
    plain = ActorCriticPolicy((box(3),), (discrete(4),))
    assert not remembers(plain)
    assert set(steps_arguments(plain, steps=3)) == {"observation", "action"}


def test_time_comes_first_for_returns() -> None:
    assert time_major(NumpyOps(), np.array([[1, 2, 3], [4, 5, 6]])).tolist() == [[1, 4], [2, 5], [3, 6]]
