"""The losses of SAC for a Discrete action and of CQL for Boxes beside the formulas of their papers, written plainly in torch."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch.nn.functional import softplus

from rollstream.errors import ConfigError
from rollstream.graph.component_test import component_test
from rollstream.graph.losses import ConservativeSoftLoss, DiscreteSoftActorCriticLoss, SoftActorCriticLoss
from rollstream.graph.policies import DiscreteSoftActorCritic, SoftActorCritic
from rollstream.spaces import Leaf

Leaves = tuple[Leaf, ...]
HALF, CENTRE = torch.tensor([2.0, 3.0]), torch.tensor([0.0, 3.0])
"""Of the bounds of `continuous`."""
SAMPLES = 3


def _dense(p: Any, name: str, x: torch.Tensor) -> torch.Tensor:
    return x @ p[f"{name}.weight"] + p[f"{name}.bias"]


def _detached(p: Any) -> Any:
    return {name: tensor.detach() for name, tensor in p.items()}


def _values(p: Any, observation: torch.Tensor) -> list[torch.Tensor]:
    """Both critics' values of all choices."""
    return [
        _dense(p, f"critics.{name}.value", torch.relu(_dense(p, f"critics.{name}.torso.0", observation))) for name in ("q1", "q2")
    ]


def _log_probs(p: Any, observation: torch.Tensor) -> torch.Tensor:
    return torch.log_softmax(_dense(p, "policy", torch.relu(_dense(p, "torso.0", observation))), -1)


@pytest.mark.parametrize("learn_temperature", [True, False])
def test_discrete_soft_actor_critic(box: Leaves, discrete: Leaves, compare: Callable[..., Any], learn_temperature: bool) -> None:
    def plain(p: Any, far: Any, x: Any) -> torch.Tensor:
        alpha = p["log_alpha"].exp().detach()
        with torch.no_grad():
            later = _log_probs(p, x["next_observation"])
            lower = torch.minimum(*_values(far, x["next_observation"]))
            target = x["reward"] + x["discount"] * (later.exp() * (lower - alpha * later)).sum(-1)
        taken = (x["action"] + 1).long()[:, None]  # `discrete` starts at -1
        q1, q2 = _values(p, x["observation"])
        critics = sum(0.5 * (q.gather(1, taken)[:, 0] - target) ** 2 for q in (q1, q2))
        log_probs = _log_probs(p, x["observation"])
        actor = (log_probs.exp() * (alpha * log_probs - torch.minimum(q1, q2).detach())).sum(-1)
        entropy = -(log_probs.exp() * log_probs).sum(-1).detach()
        total = critics + actor + (p["log_alpha"] * (entropy - 0.7) if learn_temperature else 0.0)
        return (x["weight"] * total).sum() / x["weight"].sum()

    loss = DiscreteSoftActorCriticLoss(
        DiscreteSoftActorCritic(box, discrete, hidden=(8,), initial_temperature=0.2),
        target_entropy=0.7,
        learn_temperature=learn_temperature,
    )
    case = compare(loss, plain)
    assert case.metrics["temperature"] > 0.0
    component_test(loss)


def _box_values(p: Any, observation: torch.Tensor, unit: torch.Tensor) -> list[torch.Tensor]:
    x = torch.cat([observation, unit], -1)
    found = []
    for name in ("critics.q1", "critics.q2"):
        found.append(_dense(p, f"{name}.value", torch.relu(_dense(p, f"{name}.torso.0", x)))[..., 0])
    return found


def _drawn(p: Any, observation: torch.Tensor, noise: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    hidden = torch.relu(_dense(p, "torso.0", observation))
    mean, log_std = _dense(p, "policy.mean", hidden), _dense(p, "policy.log_std", hidden)
    u = mean + log_std.exp() * noise
    log_prob = torch.distributions.Normal(mean, log_std.exp()).log_prob(u)
    return torch.tanh(u), (log_prob - 2.0 * (math.log(2.0) - u - softplus(-2.0 * u))).sum(-1)


def test_conservative_soft_loss(box: Leaves, continuous: Leaves, compare: Callable[..., Any]) -> None:
    def plain(p: Any, far: Any, x: Any) -> torch.Tensor:
        alpha = p["log_alpha"].exp().detach()
        with torch.no_grad():
            later, later_log_prob = _drawn(p, x["next_observation"], x["next_noise.action"])
            lower = torch.minimum(*_box_values(far, x["next_observation"], later))
            target = x["reward"] + x["discount"] * (lower - alpha * later_log_prob)
            many = x["observation"][:, None].expand(-1, SAMPLES, -1)
            by_policy, policy_log_prob = _drawn(p, many, x["policy_noise.noise.action"])
        taken = _box_values(p, x["observation"], (x["action"] - CENTRE) / HALF)
        unit, log_prob = _drawn(p, x["observation"], x["noise.action"])
        total = alpha * log_prob - torch.minimum(*_box_values(_detached(p), x["observation"], unit))
        total = total - p["log_alpha"] * (log_prob.detach() - 2.0)
        drawn = _box_values(p, many, by_policy)
        spread = _box_values(p, many, 2.0 * x["uniform_noise.action"] - 1.0)
        for q, q_policy, q_chance in zip(taken, drawn, spread, strict=True):
            every = torch.cat([q_policy - policy_log_prob, q_chance + 2.0 * math.log(2.0)], -1)
            total = total + 0.5 * (q - target) ** 2 + 1.5 * (torch.logsumexp(every, -1) - math.log(2 * SAMPLES) - q)
        return (x["weight"] * total).sum() / x["weight"].sum()

    policy = SoftActorCritic(box, continuous, hidden=(8,), initial_temperature=0.2)
    loss = ConservativeSoftLoss(SoftActorCriticLoss(policy, target_entropy=-2.0), weight=1.5, samples=SAMPLES)
    case = compare(loss, plain)
    assert {"temperature", "conservative_loss"} <= set(case.metrics)
    component_test(loss)


def test_settings_that_cannot_be_are_refused(box: Leaves, continuous: Leaves) -> None:
    soft = SoftActorCriticLoss(SoftActorCritic(box, continuous, hidden=(8,)), target_entropy=-2.0)
    with pytest.raises(ConfigError, match="weight of ConservativeSoftLoss must be >= 0, got -1"):
        ConservativeSoftLoss(soft, weight=-1.0)
    with pytest.raises(ConfigError, match="samples of ConservativeSoftLoss must be >= 1, got 0"):
        ConservativeSoftLoss(soft, samples=0)
