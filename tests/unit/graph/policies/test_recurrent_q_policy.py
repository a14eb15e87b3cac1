"""Action values with a memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rollstream.errors import SpaceError
from rollstream.graph import build_acting, declare
from rollstream.graph.component_test import component_test
from rollstream.graph.memory import Memory
from rollstream.graph.policies import RecurrentQPolicy
from rollstream.graph.reference import reference
from rollstream.spaces import Leaf

ENVS, STEPS = 2, 5


@pytest.mark.parametrize("settings", [{"recurrent": "lstm"}, {"recurrent": "gru", "dueling": True}])
def test_modes_agree_and_slopes_are_right(
    settings: dict[str, Any], box: Callable[..., Leaf], discrete: Callable[..., Leaf]
) -> None:
    policy = RecurrentQPolicy((box(3),), (discrete(4, start=2),), hidden=(6,), recurrent_units=5, **settings)
    component_test(policy, modes=("numpy", "torch"))


def test_a_sequence_gives_the_values_that_acting_step_by_step_gave(
    box: Callable[..., Leaf], discrete: Callable[..., Leaf], generator: np.random.Generator
) -> None:
    """An episode begins in step 2 of the first environment; the sequence starts with what was remembered before it."""
    policy = RecurrentQPolicy((box(3),), (discrete(4, start=2),), hidden=(6,), recurrent_units=5)
    acting = build_acting(policy, batch=ENVS)
    flat = acting.layout.init(0)
    acting.load(flat)
    observation = generator.standard_normal((ENVS, STEPS, 3)).astype(np.float32)
    first = np.zeros((ENVS, STEPS), np.float32)
    first[0, 2] = 1.0
    before = state = generator.standard_normal((ENVS, 10)).astype(np.float32)
    told = []
    for step in range(STEPS):
        seen = {"observation": observation[:, step], "recurrent.torso": state, "first": first[:, step]}
        out = acting.act(seen, generator, epsilon=0.5)
        told.append((out["q_taken"], out["q_max"], out["action"]))
        state = out["recurrent.torso"]
    inputs = {"observation": observation, "recurrent.torso": before, "first": first}
    found = reference(policy, api="q_sequence", memory=Memory(layout=declare(policy).layout, flat=flat), inputs=inputs)
    taken, best, action = (np.stack([one[part] for one in told], axis=1) for part in range(3))
    assert set(action.ravel().tolist()) <= {2, 3, 4, 5}
    np.testing.assert_allclose(found.output.max(axis=-1), best, rtol=1e-5)
    np.testing.assert_allclose(np.take_along_axis(found.output, (action - 2)[..., None], -1)[..., 0], taken, rtol=1e-5)
    np.testing.assert_allclose(found.state, state, rtol=1e-5, atol=1e-6)


def test_forbidden_actions_are_never_taken(
    box: Callable[..., Leaf], discrete: Callable[..., Leaf], generator: np.random.Generator
) -> None:
    mask = Leaf(name="observation.action_mask", kind="multi_binary", dtype="|i1", shape=(3,))
    policy = RecurrentQPolicy(
        (Leaf(name="observation.x", kind="box", dtype="<f4", shape=(2,)), mask), (discrete(3),), hidden=(4,)
    )
    acting = build_acting(policy, batch=500)
    acting.load(acting.layout.init(0))
    seen = {
        "observation.x": np.ones((500, 2), np.float32),
        "observation.action_mask": np.tile(np.array([1, 0, 1], np.int8), (500, 1)),
        "recurrent.torso": np.zeros((500, 128), np.float32),
        "first": np.ones(500, np.float32),
    }
    assert set(acting.act(seen, generator, epsilon=1.0)["action"].tolist()) == {0, 2}
    assert set(acting.greedy(seen)["action"].tolist()) <= {0, 2}


def test_two_actions_are_refused(box: Callable[..., Leaf], discrete: Callable[..., Leaf]) -> None:
    with pytest.raises(SpaceError, match="RecurrentQPolicy chooses one discrete action, but the environment asks for 2"):
        RecurrentQPolicy((box(3),), (discrete(2), discrete(2)))
