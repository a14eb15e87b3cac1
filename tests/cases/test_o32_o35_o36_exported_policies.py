"""O32, O35, O36: what leaves the training process, an exported policy or an answer over HTTP, keeps spaces, shapes and dtypes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from rollstream.errors import ConfigError
from rollstream.graph import ActorCriticPolicy, build_acting
from rollstream.graph.export import export_policy, signature_of
from rollstream.spaces import columns_from_json, json_from_columns, leaves

onnxruntime = pytest.importorskip("onnxruntime")


def _exported(policy: ActorCriticPolicy, to: Path) -> Any:
    """A session of the exported policy, and its tensors."""
    acting = build_acting(policy, batch=1)
    tensors = acting.layout.split(acting.layout.init(0))
    signature = signature_of(policy, actions=policy.actions, api="greedy", rows=None)
    export_policy(policy, tensors, signature=signature, observation=policy.observation, form="onnx", to=to, facts={})
    return onnxruntime.InferenceSession(str(to / "policy.onnx"))


def _policy(observation: gymnasium.Space[Any], action: gymnasium.Space[Any], **settings: Any) -> ActorCriticPolicy:
    return ActorCriticPolicy(leaves(observation, "observation"), leaves(action, "action"), **settings)


def test_o32_an_exported_policy_gives_actions_of_the_space(tmp_path: Path) -> None:
    space = spaces.Discrete(3, start=-1)
    session = _exported(_policy(spaces.Box(-1, 1, (4,)), space), tmp_path)
    observation = np.random.default_rng(0).normal(0, 30, (500, 4)).astype(np.float32)
    (actions,) = session.run(["action"], {"observation": observation})
    assert set(actions.tolist()) == {-1, 0, 1}
    assert all(space.contains(action) for action in actions)


def test_o35_an_image_that_is_not_square_keeps_its_sides(tmp_path: Path) -> None:
    policy = _policy(spaces.Box(0, 255, (60, 80, 3), np.uint8), spaces.Discrete(2), convolutions="atari")
    session = _exported(policy, tmp_path)
    assert session.get_inputs()[0].shape == ["rows", 60, 80, 3]
    image = np.random.default_rng(0).integers(0, 256, (60, 80, 3), np.uint8)
    columns = columns_from_json(policy.observation, "observation", {"observation": image.tolist()})
    np.testing.assert_array_equal(columns["observation"][0], image)
    assert session.run(["action"], columns)[0].shape == (1,)
    with pytest.raises(ConfigError, match=r"observation: must have shape \[60, 80, 3\], got \[80, 60, 3\]"):
        columns_from_json(policy.observation, "observation", {"observation": image.transpose(1, 0, 2).tolist()})


def test_o36_float64_observations_and_actions_stay_float64(tmp_path: Path) -> None:
    action = spaces.Box(-1.0, 1.0, (2,), np.float64)
    policy = _policy(spaces.Box(-1.0, 1.0, (4,), np.float64), action, bounds="squash")
    session = _exported(policy, tmp_path)
    columns = columns_from_json(policy.observation, "observation", {"observation": [0.1, 1e-12, -0.5, 1.0]})
    assert columns["observation"].dtype == np.float64
    assert columns["observation"][0, 1] == 1e-12
    (taken,) = session.run(["action"], columns)
    assert action.contains(taken[0])
    (told,) = json_from_columns(policy.actions, "action", {"action": taken})
    assert told == taken[0].tolist()
