"""What most people write: an `nn.Module`, `torch.distributions`, `clip_grad_norm_`, `torch.optim.Adam`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.distributions import Categorical

__all__ = ["PlainActing", "PlainCnnUpdate", "PlainDqnUpdate", "PlainPpoUpdate"]

MAX_NORM, RATE = 0.5, 3e-4


def _mlp(outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, outputs))


class _SharedMlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.torso = nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh())
        self.policy, self.value = nn.Linear(64, 4), nn.Linear(64, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        hidden = self.torso(x)
        return self.policy(hidden), self.value(hidden).squeeze(-1)


class _TwoMlps(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.policy, self.value = _mlp(4), _mlp(1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return self.policy(x), self.value(x).squeeze(-1)


class _Cnn(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.torso = nn.Sequential(
            nn.Conv2d(4, 16, 8, 4), nn.ReLU(), nn.Conv2d(16, 32, 4, 2), nn.ReLU(), nn.Flatten(), nn.Linear(2592, 256), nn.ReLU()
        )
        self.policy, self.value = nn.Linear(256, 6), nn.Linear(256, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        hidden = self.torso(x.float() / 255.0)
        return self.policy(hidden), self.value(hidden).squeeze(-1)


class _DuelingQ(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.torso = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
        self.value, self.advantage = nn.Linear(64, 1), nn.Linear(64, 4)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.torso(x)
        advantage = self.advantage(hidden)
        q: Tensor = self.value(hidden) + advantage - advantage.mean(-1, keepdim=True)
        return q


class PlainActing:
    """Acts by `net` (`mlp` or `cnn`) under inference mode: NumPy in, NumPy out."""

    def __init__(self, net: str) -> None:
        torch.manual_seed(0)
        self._net = _SharedMlp() if net == "mlp" else _Cnn()

    def act(self, observation: npt.NDArray[Any]) -> dict[str, npt.NDArray[Any]]:
        """Columns [N] of a batch of observations."""
        with torch.inference_mode():
            logits, value = self._net(torch.from_numpy(observation))
            log_probs = torch.log_softmax(logits, -1)
            action = torch.multinomial(log_probs.exp(), 1)
            log_prob = log_probs.gather(-1, action).squeeze(-1)
            return {"action": action.squeeze(-1).numpy(), "log_prob": log_prob.numpy(), "value": value.numpy()}


class PlainPpoUpdate:
    """One PPO update of a batch of tensors.

    Args:
        compiled: run loss and backward through `torch.compile`.
    """

    def __init__(self, batch: Mapping[str, npt.NDArray[Any]], *, net: nn.Module | None = None, compiled: bool = False) -> None:
        torch.manual_seed(0)
        self._net = net or _TwoMlps()
        self._adam = torch.optim.Adam(self._net.parameters(), lr=RATE, eps=1e-5)
        self._batch = {name: torch.from_numpy(np.ascontiguousarray(column)) for name, column in batch.items()}
        self._loss: Callable[[], Tensor] = torch.compile(self._plain_loss) if compiled else self._plain_loss

    def step(self) -> float:
        """Forward, backward, clip, Adam; the loss."""
        self._adam.zero_grad()
        loss = self._loss()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self._net.parameters(), MAX_NORM)
        self._adam.step()
        return float(loss.item())

    def _plain_loss(self) -> Tensor:
        batch = self._batch
        logits, value = self._net(batch["observation"])
        distribution: Any = Categorical(logits=logits, validate_args=False)
        ratio = torch.exp(distribution.log_prob(batch["action"]) - batch["log_prob"])
        advantage = batch["advantage"]
        surrogate = torch.minimum(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage)
        value_loss = ((value - batch["return"]) ** 2).mean()
        loss: Tensor = -surrogate.mean() + 0.5 * value_loss - 0.01 * distribution.entropy().mean()
        return loss


class PlainCnnUpdate(PlainPpoUpdate):
    """The same with the convolutional network."""

    def __init__(self, batch: Mapping[str, npt.NDArray[Any]], *, compiled: bool = False) -> None:
        super().__init__(batch, net=_Cnn(), compiled=compiled)


class PlainDqnUpdate:
    """One double-DQN update of a batch of tensors."""

    def __init__(self, batch: Mapping[str, npt.NDArray[Any]]) -> None:
        torch.manual_seed(0)
        self._net, self._target = _DuelingQ(), _DuelingQ()
        self._adam = torch.optim.Adam(self._net.parameters(), lr=RATE, eps=1e-5)
        self._batch = {name: torch.from_numpy(np.ascontiguousarray(column)) for name, column in batch.items()}

    def step(self) -> float:
        """Forward, backward, clip, Adam; the loss."""
        batch = self._batch
        with torch.no_grad():
            best = self._net(batch["next_observation"]).argmax(-1, keepdim=True)
            following = self._target(batch["next_observation"]).gather(-1, best).squeeze(-1)
            wanted = batch["reward"] + batch["discount"] * following
        q = self._net(batch["observation"]).gather(-1, batch["action"].unsqueeze(-1)).squeeze(-1)
        loss = (batch["weight"] * nn.functional.huber_loss(q, wanted, reduction="none")).mean()
        self._adam.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self._net.parameters(), MAX_NORM)
        self._adam.step()
        return float(loss.item())
