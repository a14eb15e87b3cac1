"""What people write without Rollstream: `nn.Module`, `torch.optim`, no components. The references of the figures of `bench graph`.

Each function returns a step without arguments, which runs one update (or one `act`) on fixed random rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributions import Categorical
from torch.nn import functional

__all__ = ["cnn_module", "cnn_step", "dqn_step", "mlp_module", "ppo_step", "torch_act"]

OBSERVATION, ACTIONS = 8, 4
LEARNING_RATE, MAX_NORM, EPSILON = 3e-4, 0.5, 1e-5


class ActorCritic(nn.Module):
    """A torso with a policy head and a value head."""

    def __init__(self, torso: nn.Module, width: int, actions: int) -> None:
        super().__init__()
        self.torso, self.policy, self.value = torso, nn.Linear(width, actions), nn.Linear(width, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        hidden = self.torso(x)
        return self.policy(hidden), self.value(hidden).squeeze(-1)


def mlp_module(*, observation: int = OBSERVATION, actions: int = ACTIONS) -> ActorCritic:
    """2 x 64 tanh."""
    return ActorCritic(
        nn.Sequential(nn.Linear(observation, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh()), width=64, actions=actions
    )


class _Scaled(nn.Module):
    """uint8 [B, 84, 84, 4] -> float [B, 4, 84, 84] in [0, 1]."""

    def forward(self, x: Tensor) -> Tensor:
        return x.permute(0, 3, 1, 2).float() / 255.0


def cnn_module(*, actions: int = 6) -> ActorCritic:
    """The torso of Mnih et al. 2013: 16 8x8 stride 4, 32 4x4 stride 2, 256."""
    torso = nn.Sequential(
        _Scaled(),
        nn.Conv2d(4, 16, 8, 4),
        nn.ReLU(),
        nn.Conv2d(16, 32, 4, 2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(2592, 256),
        nn.ReLU(),
    )
    return ActorCritic(torso, width=256, actions=actions)


def _ppo_loss(module: Any, x: Tensor, *, action: Tensor, log_prob: Tensor, advantage: Tensor, back: Tensor) -> Tensor:
    logits, value = module(x)
    distribution: Any = Categorical(logits=logits)
    ratio = torch.exp(distribution.log_prob(action) - log_prob)
    surrogate = torch.min(ratio * advantage, torch.clamp(ratio, 0.8, 1.2) * advantage)
    loss: Tensor = -surrogate.mean() + 0.5 * functional.mse_loss(value, back) - 0.01 * distribution.entropy().mean()
    return loss


def ppo_step(*, rows: int = 256) -> Callable[[], None]:
    """PPO's update of a 2x64 MLP: loss, backward, `clip_grad_norm_`, `torch.optim.Adam`."""
    return _step(mlp_module(), torch.randn(rows, OBSERVATION), actions=ACTIONS)


def cnn_step(*, rows: int = 256, compiled: bool = False) -> Callable[[], None]:
    """The same of a CNN on 84x84x4 frames; `compiled` by `torch.compile` of the plain module."""
    module = cnn_module()
    frames = torch.randint(0, 256, (rows, 84, 84, 4), dtype=torch.uint8)
    return _step(torch.compile(module) if compiled else module, frames, actions=6)


def _step(module: Any, x: Tensor, *, actions: int) -> Callable[[], None]:
    rows = len(x)
    action, log_prob = torch.randint(0, actions, (rows,)), torch.full((rows,), -1.0)
    advantage, back = torch.randn(rows), torch.randn(rows)
    optimizer = torch.optim.Adam(module.parameters(), lr=LEARNING_RATE, eps=EPSILON)

    def step() -> None:
        loss = _ppo_loss(module, x, action=action, log_prob=log_prob, advantage=advantage, back=back)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(module.parameters(), MAX_NORM)
        optimizer.step()

    return step


def dqn_step(*, rows: int = 256) -> Callable[[], None]:
    """Double DQN's update of a 2x64 MLP, with importance weights and TD errors for the priorities."""

    def net() -> nn.Sequential:
        return nn.Sequential(nn.Linear(OBSERVATION, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, ACTIONS))

    online, target = net(), net()
    before, after = torch.randn(rows, OBSERVATION), torch.randn(rows, OBSERVATION)
    action, reward, discount, weight = (
        torch.randint(0, ACTIONS, (rows,)),
        torch.randn(rows),
        torch.full((rows,), 0.99),
        torch.ones(rows),
    )
    optimizer = torch.optim.Adam(online.parameters(), lr=LEARNING_RATE, eps=EPSILON)

    def step() -> None:
        with torch.no_grad():
            best = online(after).argmax(-1, keepdim=True)
            back = reward + discount * target(after).gather(-1, best).squeeze(-1)
        q = online(before).gather(-1, action.unsqueeze(-1)).squeeze(-1)
        loss = (weight * functional.smooth_l1_loss(q, back, reduction="none")).mean()
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(online.parameters(), MAX_NORM)
        optimizer.step()

    return step


def torch_act(*, rows: int = 64) -> Callable[[], Any]:
    """Observation in, action, log-probability and value out, of a 2x64 MLP under inference mode; drawn from given noise."""
    module, x, noise = mlp_module(), torch.randn(rows, OBSERVATION), torch.rand(rows)

    def act() -> Any:
        with torch.inference_mode():
            logits, value = module(x)
            log_probs = torch.log_softmax(logits, -1)
            cumulative = log_probs.exp().cumsum(-1)
            action = (cumulative[:, :-1] <= noise.unsqueeze(-1) * cumulative[:, -1:]).sum(-1)
            log_prob = log_probs.gather(-1, action.unsqueeze(-1)).squeeze(-1)
            return {"action": action.numpy(), "log_prob": log_prob.numpy(), "value": value.numpy()}

    return act
