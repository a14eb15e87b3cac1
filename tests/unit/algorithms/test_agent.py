"""Agents refuse spaces that they cannot act in."""

from __future__ import annotations

import pytest

from rollstream.algorithms import make_agent
from rollstream.errors import SpaceError
from rollstream.spaces import Leaf

OBSERVATION = (Leaf(name="observation", kind="box", dtype="<f4", shape=(3,), low=(-1.0,) * 3, high=(1.0,) * 3),)


@pytest.mark.parametrize("algorithm", ["ppo", "dqn"])
def test_several_actions_at_once_are_refused(algorithm: str) -> None:
    actions = tuple(
        Leaf(name=f"action.{name}", kind="discrete", dtype="<i8", shape=(), counts=(2,), starts=(0,))
        for name in ("left", "right")
    )
    with pytest.raises(
        SpaceError, match=r"chooses one discrete action, but the environment asks for 2 \(action.left, action.right\)"
    ):
        make_agent(algorithm, {}, observation=OBSERVATION, actions=actions)
