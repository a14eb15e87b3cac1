"""Losses of policies with a value head."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from rollstream.graph.component_test import component_test
from rollstream.graph.losses import BehaviorCloningLoss, MarwilLoss, PolicyGradientLoss, PpoLoss, VtraceLoss
from rollstream.graph.policies import ActorCriticPolicy
from rollstream.spaces import Leaf

Leaves = tuple[Leaf, ...]
STEPS = 5


def _judge(p: Any, observation: torch.Tensor, action: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Log-probability, entropy and value of the policy of `discrete_policy`; actions count from -1."""
    hidden = torch.tanh(observation @ p["torso.0.weight"] + p["torso.0.bias"])
    chances = torch.distributions.Categorical(logits=hidden @ p["policy.weight"] + p["policy.bias"])
    value = (hidden @ p["value.weight"] + p["value.bias"])[..., 0]
    return chances.log_prob(action + 1), chances.entropy(), value


@pytest.fixture
def discrete_policy(box: Leaves, discrete: Leaves) -> ActorCriticPolicy:
    return ActorCriticPolicy(box, discrete, hidden=(5,))


def test_the_policy_gradient(discrete_policy: ActorCriticPolicy, compare: Callable[..., Any]) -> None:
    def plain(p: Any, far: Any, x: Any) -> torch.Tensor:
        log_prob, entropy, value = _judge(p, x["observation"], x["action"])
        each = (
            -log_prob * x["advantage"] + x["value_coefficient"] * (value - x["return"]) ** 2 - x["entropy_coefficient"] * entropy
        )
        return (each * x["weight"]).sum() / x["weight"].sum()

    compare(PolicyGradientLoss(discrete_policy), plain)
    component_test(PolicyGradientLoss(discrete_policy))


@pytest.mark.parametrize(("clip_value", "kl_penalty"), [(False, False), (True, False), (False, True)])
def test_ppo(discrete_policy: ActorCriticPolicy, compare: Callable[..., Any], clip_value: bool, kl_penalty: bool) -> None:
    def plain(p: Any, far: Any, x: Any) -> torch.Tensor:
        log_prob, entropy, value = _judge(p, x["observation"], x["action"])
        ratio = (log_prob - x["log_prob"]).exp()
        clipped = ratio.clamp(1.0 - float(x["clip_ratio"]), 1.0 + float(x["clip_ratio"]))
        squared = (value - x["return"]) ** 2
        if clip_value:
            limit = float(x["value_clip"])
            nearby = x["value"] + (value - x["value"]).clamp(-limit, limit)
            squared = torch.maximum(squared, (nearby - x["return"]) ** 2)
        each = -torch.minimum(ratio * x["advantage"], clipped * x["advantage"]) + x["value_coefficient"] * squared
        each = each - x["entropy_coefficient"] * entropy
        if kl_penalty:
            each = each + x["kl_coefficient"] * (ratio - 1.0 - (log_prob - x["log_prob"]))
        return (each * x["weight"]).sum() / x["weight"].sum()

    loss = PpoLoss(discrete_policy, clip_value=clip_value, kl_penalty=kl_penalty)
    compare(loss, plain)
    component_test(loss)


def test_ppo_of_a_policy_that_remembers(box: Leaves, discrete: Leaves) -> None:
    policy = ActorCriticPolicy(box, discrete, hidden=(5,), recurrent="gru", recurrent_units=4)
    component_test(PpoLoss(policy, steps=3), rows=3)


@pytest.mark.parametrize("value", [False, True])
def test_behavior_cloning(discrete_policy: ActorCriticPolicy, compare: Callable[..., Any], value: bool) -> None:
    def plain(p: Any, far: Any, x: Any) -> torch.Tensor:
        log_prob, _, estimate = _judge(p, x["observation"], x["action"])
        each = -log_prob
        if value:
            each = each + x["value_coefficient"] * (estimate - x["return"]) ** 2
        return (each * x["weight"]).sum() / x["weight"].sum()

    compare(BehaviorCloningLoss(discrete_policy, value=value), plain)
    component_test(BehaviorCloningLoss(discrete_policy, value=value))


def test_behavior_cloning_of_continuous_actions(box: Leaves, continuous: Leaves, compare: Callable[..., Any]) -> None:
    policy = ActorCriticPolicy(box, continuous, hidden=(5,), value=False)

    def plain(p: Any, far: Any, x: Any) -> torch.Tensor:
        hidden = torch.tanh(x["observation"] @ p["torso.0.weight"] + p["torso.0.bias"])
        mean = hidden @ p["policy.mean.weight"] + p["policy.mean.bias"]
        chances = torch.distributions.Normal(mean, p["policy.log_std"].exp())
        each = -chances.log_prob(x["latent.action"]).sum(-1)
        return (each * x["weight"]).sum() / x["weight"].sum()

    compare(BehaviorCloningLoss(policy), plain)
    component_test(BehaviorCloningLoss(policy))


@pytest.mark.parametrize("max_weight", [20.0, 1.25])
def test_marwil(discrete_policy: ActorCriticPolicy, compare: Callable[..., Any], max_weight: float) -> None:
    def plain(p: Any, far: Any, x: Any) -> torch.Tensor:
        log_prob, _, value = _judge(p, x["observation"], x["action"])
        advantage = x["return"] - value
        imitation = torch.exp(x["beta"] * advantage.detach() / x["advantage_scale"]).clamp(max=max_weight)
        each = -imitation * log_prob + x["value_coefficient"] * advantage**2
        return (each * x["weight"]).sum() / x["weight"].sum()

    loss = MarwilLoss(discrete_policy, max_weight=max_weight)
    found = compare(loss, plain)
    weight = found.inputs["weight"]
    squares = found.result.rows["advantage"] ** 2
    assert found.metrics["squared_advantage"] == pytest.approx(float(squares @ weight / weight.sum()), rel=1e-5)
    component_test(loss)


@pytest.mark.parametrize("clips", [(1.0, 1.0, 1.0, 1.0), (0.9, 1.5, 0.8, 2.0)])
def test_vtrace_actor_critic(discrete_policy: ActorCriticPolicy, compare: Callable[..., Any], clips: tuple[float, ...]) -> None:
    lambda_, rho_clip, c_clip, advantage_rho_clip = clips

    def plain(p: Any, far: Any, x: Any) -> torch.Tensor:
        log_prob, entropy, value = _judge(p, x["observation"], x["action"])
        total, weights = torch.zeros(()), x["weight"][:, :STEPS].sum()
        ratio = (log_prob - x["log_prob"]).exp().detach()
        fixed = value.detach()
        for row in range(len(ratio)):
            targets = [math.nan] * STEPS
            for s in range(STEPS):  # equation 1, as it stands
                target, factor = fixed[row, s], 1.0
                for t in range(s, STEPS):
                    delta = x["reward"][row, t] + x["discount"][row, t] * fixed[row, t + 1] - fixed[row, t]
                    target = target + factor * min(rho_clip, ratio[row, t]) * delta
                    factor = factor * x["discount"][row, t] * x["continues"][row, t] * lambda_ * min(c_clip, ratio[row, t])
                targets[s] = target
            for s in range(STEPS):
                goes_on = s + 1 < STEPS and x["continues"][row, s]
                after = targets[s + 1] if goes_on else fixed[row, s + 1]
                gain = x["reward"][row, s] + x["discount"][row, s] * after - fixed[row, s]
                each = -min(advantage_rho_clip, ratio[row, s]) * log_prob[row, s] * gain
                each = each + x["value_coefficient"] * (targets[s] - value[row, s]) ** 2
                each = each - x["entropy_coefficient"] * entropy[row, s]
                total = total + each * x["weight"][row, s] / weights
        return total

    names = ("lambda_", "rho_clip", "c_clip", "advantage_rho_clip")
    loss = VtraceLoss(discrete_policy, steps=STEPS, **dict(zip(names, clips, strict=True)))
    goes_on = np.random.default_rng(3).random((16, STEPS + 1)) < 0.7
    found = compare(loss, plain, continues=goes_on)
    assert found.result.rows["td_error"].shape == (16,)
    component_test(loss)


def test_vtrace_of_a_policy_that_remembers(box: Leaves, discrete: Leaves) -> None:
    policy = ActorCriticPolicy(box, discrete, hidden=(5,), recurrent="lstm", recurrent_units=4)
    component_test(VtraceLoss(policy, steps=3), rows=3)
