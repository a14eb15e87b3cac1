"""6. A network of your own: any `torch.nn.Module` in place of PPO's torso.

    python docs/examples/06_own_network.py

Its parameters lie in the flat vector beside all others, so they are clipped, saved and published like any. Actors then need torch too.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import torch
from torch import nn

from rollstream.algorithms import Algorithm, register
from rollstream.algorithms.ppo.agent import PpoAgent
from rollstream.algorithms.ppo.config import PpoConfig
from rollstream.algorithms.ppo.flow import flow
from rollstream.config import ExperimentSpec, load
from rollstream.graph import ActorCriticPolicy
from rollstream.graph.torch_module import TorchModule
from rollstream_cli.inline import run
from rollstream_cli.progress import describe_report

__all__ = ["OwnAgent", "PpoConfig", "flow"]


class Residual(nn.Module):
    """[B, numbers] -> [B, width]: a layer, and what another one adds to it."""

    def __init__(self, numbers: int, width: int) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(numbers, width), nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, observation: torch.Tensor) -> torch.Tensor:
        x = torch.tanh(self.first(observation))
        return self.norm(x + torch.tanh(self.second(x)))


class OwnAgent(PpoAgent):
    """PPO whose policy and value head each have a network of this kind."""

    def __init__(self, config: PpoConfig, *, observation: Any, actions: Any) -> None:
        super().__init__(config, observation=observation, actions=actions)
        torch.manual_seed(1)  # the module brings its first parameters with it
        torch.set_num_threads(1)  # for so small a network threads cost more than they give
        network = TorchModule(Residual(numbers=observation[0].shape[0], width=64))
        self.policy = ActorCriticPolicy(observation, actions, network=network, shared_torso=False)


def main() -> None:
    """Train it on CartPole-v1, in torch."""
    register(Algorithm(name="own-ppo", package=__name__, settings="PpoConfig", agent="OwnAgent", needs_replay=False))
    document = {
        "algorithm": "own-ppo",
        "environment": {"id": "CartPole-v1"},
        "settings": {"mode": "torch"},
        "stop": {"env_steps": 8_000},
        "evaluation_episodes": 20,
    }
    spec = load(ExperimentSpec, document, what="experiment")
    with tempfile.TemporaryDirectory() as runs:
        summary = run(spec, runs_dir=Path(runs), report=lambda report: print(describe_report(report)))
    print(f"mean return of {summary['evaluation_episodes']} greedy episodes: {summary['mean_return']:.0f}")


if __name__ == "__main__":
    main()
