"""RLlib trains, run by a Python that has ray[rllib]; imports nothing of Rollstream. One line of JSON for each result of `train()`.

rllib_train.py ALGORITHM RUNNERS ENVS_PER_RUNNER LEARNERS SECONDS GOAL [broken]

Hyper-parameters are ray's own tuned examples for CartPole-v1. SECONDS count from the moment when the algorithm is built; GOAL is a
mean return that ends it, 0 for none. ENVS_PER_RUNNER 0 leaves RLlib's default, and any other number also sets one thread of torch.
With `broken` the environment raises in its 2,000th step.
"""

from __future__ import annotations

import json
import logging
import math
import os
import sys
from time import perf_counter
from typing import Any

__all__ = ["main"]

ENVIRONMENT = "CartPole-v1"
CPUS = 8
BREAKS_AT = 2_000


def _configured(name: str) -> Any:
    from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig

    if name == "ppo":
        from ray.rllib.algorithms.ppo import PPOConfig

        config = PPOConfig().training(lr=0.0003, num_epochs=6, vf_loss_coeff=0.01, gamma=0.99, use_kl_loss=True)
        return config, DefaultModelConfig(fcnet_hiddens=[32], fcnet_activation="linear", vf_share_layers=True)
    if name == "impala":
        from ray.rllib.algorithms.impala import IMPALAConfig

        config = IMPALAConfig().training(
            train_batch_size_per_learner=500,
            grad_clip=40.0,
            grad_clip_by="global_norm",
            lr=0.0005,
            vf_loss_coeff=0.05,
            entropy_coeff=0.0,
        )
        return config, DefaultModelConfig(vf_share_layers=True)
    if name == "appo":
        from ray.rllib.algorithms.appo import APPOConfig

        config = APPOConfig().training(
            train_batch_size_per_learner=1_000,
            vf_loss_coeff=0.05,
            entropy_coeff=0.01,
            num_epochs=2,
            lr=0.00075,
            minibatch_size=250,
        )
        return config, DefaultModelConfig(fcnet_hiddens=[32])
    from ray.rllib.algorithms.dqn import DQNConfig

    config = DQNConfig().training(
        lr=0.0005,
        train_batch_size_per_learner=32,
        replay_buffer_config={"type": "PrioritizedEpisodeReplayBuffer", "capacity": 50_000, "alpha": 0.6, "beta": 0.4},
        n_step=(2, 5),
        double_q=True,
        dueling=True,
        epsilon=[(0, 1.0), (10_000, 0.02)],
    )
    return config, DefaultModelConfig(
        fcnet_hiddens=[256],
        fcnet_activation="tanh",
        fcnet_bias_initializer="zeros_",
        head_fcnet_bias_initializer="zeros_",
        head_fcnet_hiddens=[256],
    )


def _broken(_: Any) -> Any:
    import gymnasium

    class Broken(gymnasium.Wrapper[Any, Any, Any, Any]):
        left = BREAKS_AT

        def step(self, action: Any) -> Any:
            self.left -= 1
            if self.left <= 0:
                raise RuntimeError("the simulator broke")
            return super().step(action)

    return Broken(gymnasium.make(ENVIRONMENT))


def _number(found: Any, *path: str) -> float | None:
    for key in path:
        if not isinstance(found, dict) or key not in found:
            return None
        found = found[key]
    value = float(found.peek()) if hasattr(found, "peek") else float(found)
    return None if math.isnan(value) else value


def main(name: str, runners: int, envs: int, *, learners: int, seconds: float, goal: float, broken: bool) -> None:
    """Train until the time is over or the goal is reached."""
    out = os.dup(1)
    os.dup2(2, 1)  # ray prints to standard output
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_raylet_start_wait_time_s", "120")  # its start takes longer than it allows on a busy machine
    os.environ.setdefault("RAY_worker_niceness", "0")  # ray starves its own runners on a shared machine otherwise
    import ray
    import torch

    config, model = _configured(name)
    if broken:
        from ray.tune.registry import register_env

        register_env("broken", _broken)
    config.environment("broken" if broken else ENVIRONMENT)
    config.env_runners(num_env_runners=runners)
    if envs:
        config.env_runners(num_envs_per_env_runner=envs)
        torch.set_num_threads(1)
    config.learners(num_learners=learners, num_gpus_per_learner=0)
    config.rl_module(model_config=model)
    config.debugging(seed=42, log_level="ERROR")
    ray.init(num_cpus=CPUS, include_dashboard=False, logging_level=logging.ERROR, log_to_driver=False)
    algorithm = config.build_algo()
    start_s = perf_counter()
    rows = getattr(config, "minibatch_size", None) or config.train_batch_size_per_learner
    while True:
        result = algorithm.train()
        told = {
            "wall_s": perf_counter() - start_s,
            "env_steps": _number(result, "env_runners", "num_env_steps_sampled_lifetime") or 0.0,
            # the learner's own count of environment steps grows by the whole batch with each minibatch
            "rows_trained": _number(result, "learners", "default_policy", "num_module_steps_trained_lifetime") or 0.0,
            "env_steps_trained_as_told": _number(result, "learners", "__all_modules__", "num_env_steps_trained_lifetime") or 0.0,
            "rows_per_update": rows,
            "mean_return": _number(result, "env_runners", "episode_return_mean"),
            "healthy_runners": algorithm.env_runner_group.num_healthy_remote_workers(),
        }
        os.write(out, (json.dumps(told) + "\n").encode())
        if told["wall_s"] >= seconds or (goal and (told["mean_return"] or 0.0) >= goal):
            break
    algorithm.stop()
    ray.shutdown()


if __name__ == "__main__":
    main(
        sys.argv[1],
        int(sys.argv[2]),
        int(sys.argv[3]),
        learners=int(sys.argv[4]),
        seconds=float(sys.argv[5]),
        goal=float(sys.argv[6]),
        broken="broken" in sys.argv[7:],
    )
