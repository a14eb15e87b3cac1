"""Losses of deterministic and stochastic actors with twin critics."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from torch.nn.functional import softplus

from rollstream.graph.component_test import component_test
from rollstream.graph.losses import SoftActorCriticLoss, TwinDelayedLoss
from rollstream.graph.policies import DeterministicActorCritic, SoftActorCritic
from rollstream.spaces import Leaf

Leaves = tuple[Leaf, ...]
HALF, CENTRE = torch.tensor([2.0, 3.0]), torch.tensor([0.0, 3.0])
"""Of the bounds of `continuous`."""


def _dense(p: Any, name: str, x: torch.Tensor) -> torch.Tensor:
    return x @ p[f"{name}.weight"] + p[f"{name}.bias"]


def _critics(p: Any, observation: torch.Tensor, unit: torch.Tensor) -> list[torch.Tensor]:
    """Both values of actions in [-1, 1]."""
    x = torch.cat([observation, unit], -1)
    found = []
    for name in ("critics.q1", "critics.q2"):
        hidden = torch.relu(_dense(p, f"{name}.torso.0", x))
        found.append(_dense(p, f"{name}.value", hidden)[:, 0])
    return found


def _detached(p: Any) -> Any:
    return {name: tensor.detach() for name, tensor in p.items()}


def _drawn(p: Any, observation: torch.Tensor, noise: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Squashed actions and their log-probability."""
    hidden = torch.relu(_dense(p, "torso.0", observation))
    mean, log_std = _dense(p, "policy.mean", hidden), _dense(p, "policy.log_std", hidden)
    u = mean + log_std.exp() * noise
    log_prob = torch.distributions.Normal(mean, log_std.exp()).log_prob(u)
    return torch.tanh(u), (log_prob - 2.0 * (math.log(2.0) - u - softplus(-2.0 * u))).sum(-1)


@pytest.mark.parametrize("learn_temperature", [True, False])
def test_soft_actor_critic(box: Leaves, continuous: Leaves, compare: Callable[..., Any], learn_temperature: bool) -> None:
    def plain(p: Any, far: Any, x: Any) -> torch.Tensor:
        alpha = p["log_alpha"].exp().detach()
        with torch.no_grad():
            later, later_log_prob = _drawn(p, x["next_observation"], x["next_noise.action"])
            lower = torch.minimum(*_critics(far, x["next_observation"], later))
            target = x["reward"] + x["discount"] * (lower - alpha * later_log_prob)
        q1, q2 = _critics(p, x["observation"], (x["action"] - CENTRE) / HALF)
        critics = 0.5 * (q1 - target) ** 2 + 0.5 * (q2 - target) ** 2
        unit, log_prob = _drawn(p, x["observation"], x["noise.action"])
        actor = alpha * log_prob - torch.minimum(*_critics(_detached(p), x["observation"], unit))
        temperature = -p["log_alpha"] * (log_prob.detach() - 2.0) if learn_temperature else 0.0
        return ((critics + actor + temperature) * x["weight"]).sum() / x["weight"].sum()

    policy = SoftActorCritic(box, continuous, hidden=(8,), initial_temperature=0.2)
    loss = SoftActorCriticLoss(policy, target_entropy=-2.0, learn_temperature=learn_temperature)
    found = compare(loss, plain)
    temperature = math.exp(float(found.memory.live_views["log_alpha"][0]))
    assert found.metrics["temperature"] == pytest.approx(temperature, rel=1e-5)
    component_test(loss, rows=8)


@pytest.mark.parametrize(("twin", "noise"), [(True, 0.2), (False, 0.0)], ids=["td3", "ddpg"])
def test_td3_and_ddpg(box: Leaves, continuous: Leaves, compare: Callable[..., Any], twin: bool, noise: float) -> None:
    def plain(p: Any, far: Any, x: Any) -> torch.Tensor:
        def actor_of(net: Any, observation: torch.Tensor) -> torch.Tensor:
            return torch.tanh(_dense(net, "policy.action", torch.relu(_dense(net, "torso.0", observation))))

        with torch.no_grad():
            moved = (noise * x["next_noise.action"]).clamp(-0.3, 0.3)
            later = (actor_of(far, x["next_observation"]) + moved).clamp(-1.0, 1.0)
            values = _critics(far, x["next_observation"], later)
            target = x["reward"] + x["discount"] * (torch.minimum(*values) if twin else values[0])
        found = _critics(p, x["observation"], (x["action"] - CENTRE) / HALF)
        critics = sum(0.5 * (q - target) ** 2 for q in found[: 2 if twin else 1])
        actor = -_critics(_detached(p), x["observation"], actor_of(p, x["observation"]))[0]
        return ((critics + x["actor_weight"] * actor) * x["weight"]).sum() / x["weight"].sum()

    policy = DeterministicActorCritic(box, continuous, hidden=(8,))
    loss = TwinDelayedLoss(policy, twin=twin, target_noise=noise, target_noise_limit=0.3)
    compare(loss, plain)
    found = compare(loss, plain, actor_weight=0.0)
    assert np.asarray(found.result.loss) == pytest.approx(found.metrics["critic_loss"], rel=1e-5)
    component_test(loss, rows=8)
