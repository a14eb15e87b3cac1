"""O37: Box actions without bounds must work or be refused with what to do, never become NaN."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

from rollstream.errors import SpaceError
from rollstream.graph import ActorCriticPolicy, QPolicy, SoftActorCritic, build_acting
from rollstream.spaces import leaves

OBSERVATION = leaves(gymnasium.spaces.Box(-1.0, 1.0, (2,)), "observation")


@pytest.mark.parametrize("scale", [0.0, 1.0, 1e3])
@pytest.mark.parametrize("bounds", ["clip", "squash"])
def test_o37_a_box_action_without_bounds_is_a_plain_gaussian_and_finite(bounds: str, scale: float) -> None:
    space = gymnasium.spaces.Box(-np.inf, np.inf, (3,))
    policy = ActorCriticPolicy(OBSERVATION, leaves(space, "action"), bounds=bounds)  # type: ignore[arg-type]
    acting = build_acting(policy, batch=50)
    acting.load(np.float32(scale) * acting.layout.init(0))
    found = acting.act({"observation": np.ones((50, 2), np.float32)}, np.random.default_rng(0))
    assert all(np.isfinite(column).all() for column in found.values())
    assert all(space.contains(value) for value in found["action"])
    assert found["action"].std() > 0.5
    assert policy.action_columns[0].name == "action"


@pytest.mark.parametrize(("low", "high"), [(-np.inf, 1.0), (0.0, np.inf), ([-np.inf, -1.0], [np.inf, 1.0])])
def test_o37_bounds_on_one_side_or_of_some_entries_are_refused(low: object, high: object) -> None:
    space = gymnasium.spaces.Box(np.resize(low, 2).astype(np.float32), np.resize(high, 2).astype(np.float32))  # type: ignore[call-overload]
    with pytest.raises(SpaceError, match=r"^action: a Box action needs bounds on both sides of every entry, or none at all"):
        ActorCriticPolicy(OBSERVATION, leaves(space, "action"))


def test_o37_what_must_have_bounds_is_refused_without() -> None:
    actions = leaves(gymnasium.spaces.Box(-np.inf, np.inf, (1,)), "action")
    with pytest.raises(SpaceError, match="^action: needs a Box with finite bounds, got box"):
        SoftActorCritic(OBSERVATION, actions)
    with pytest.raises(
        SpaceError, match=r"^action: QPolicy.act, argument action: needs a Discrete space, .* no finite bounds; use"
    ):
        QPolicy(OBSERVATION, actions)
