"""RLlib's environment runner, alone in this process, run by a Python that has ray[rllib]; imports nothing of Rollstream.

rllib_runner.py ENVIRONMENT ENVS STEPS N_STEP SECONDS   ->   {"steps_per_s": ...}
"""

from __future__ import annotations

import json
import sys
from time import perf_counter

__all__ = ["main"]


def main(environment: str, envs: int, steps: int, n_step: int, seconds: float) -> None:
    """Sample as a DQN worker does, with exploration, in tasks of `steps` vector steps."""
    import torch
    from ray.rllib.algorithms.dqn import DQNConfig

    torch.set_num_threads(1)
    config = (
        DQNConfig()
        .environment(environment)
        .env_runners(num_env_runners=0, num_envs_per_env_runner=envs)
        .training(n_step=n_step, dueling=True, double_q=True)
        .rl_module(model_config={"fcnet_hiddens": [64, 64], "fcnet_activation": "relu"})
        .debugging(log_level="ERROR")
    )
    runner = config.build_algo().env_runner
    runner.sample(num_timesteps=envs * steps)
    done, start_s = 0, perf_counter()
    while perf_counter() - start_s < seconds:
        done += sum(len(episode) for episode in runner.sample(num_timesteps=envs * steps))
    print(json.dumps({"steps_per_s": done / (perf_counter() - start_s)}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5]))
