"""A network of the user's in place of a policy's torso."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete

from rollstream.errors import ConfigError
from rollstream.graph import ActorCriticPolicy, build_acting
from rollstream.graph.declare import declare
from rollstream.graph.torch_module import TorchModule
from rollstream.spaces import leaves

SEEN, ACTS = leaves(Box(-1, 1, (3,), np.float32), "observation"), leaves(Discrete(2), "action")


def test_its_parameters_stand_in_the_policy_once_for_each_torso() -> None:
    policy = ActorCriticPolicy(SEEN, ACTS, network=TorchModule(torch.nn.Linear(3, 5)), shared_torso=False)
    names = declare(policy).layout.names
    assert {"torso.weight", "torso.bias", "value_torso.weight", "value_torso.bias"} <= set(names)


def test_it_acts_in_torch_by_itself() -> None:
    acting = build_acting(ActorCriticPolicy(SEEN, ACTS, network=TorchModule(torch.nn.Linear(3, 5))), batch=2)
    assert acting.greedy({"observation": np.zeros((2, 3), np.float32)})["action"].shape == (2,)


def test_it_does_not_remember() -> None:
    with pytest.raises(ConfigError, match="a network of yours remembers nothing"):
        ActorCriticPolicy(SEEN, ACTS, network=TorchModule(torch.nn.Linear(3, 5)), recurrent="gru")
