"""What training is meant to reach beside RLlib, as data."""

from __future__ import annotations

from rollstream_learner.bench.targets import Target

__all__ = ["TARGETS"]

TIMES_STOCK = {"ppo": 10.0, "impala": 20.0, "appo": 20.0, "dqn": 10.0}
TIMES_BEST = 5.0


def _times(algorithm: str, setting: str, name: str, bound: float) -> Target:
    return Target(
        name=f"{algorithm}, {name.replace('_', ' ')}, times RLlib's {setting}",
        path=(algorithm, f"times_{setting}", name),
        bound=bound,
        at="least",
    )


TARGETS = (
    *(
        _times(algorithm, setting, "env_steps_trained_per_s", bound)
        for algorithm in ("ppo", "impala", "appo")
        for setting, bound in (("stock", TIMES_STOCK[algorithm]), ("best", TIMES_BEST))
    ),
    _times("dqn", "stock", "env_steps_per_s", TIMES_STOCK["dqn"]),
    _times("dqn", "stock", "updates_per_s", TIMES_STOCK["dqn"]),
    Target(name="PPO to 450, s of training", path=("goal", "ours", "goal_after_training_s"), bound=15.0),
    Target(name="PPO to 450, s from the start of the process", path=("goal", "ours", "goal_after_start_s"), bound=20.0),
    Target(name="PPO, s until the first result", path=("ppo", "ours", "first_result_after_s"), bound=3.0),
    Target(name="PPO, MiB of all processes", path=("ppo", "ours", "rss_mb"), bound=700.0),
    Target(name="DQN, MiB of all processes", path=("dqn", "ours", "rss_mb"), bound=700.0),
    Target(name="PPO beside a busy core, share kept", path=("busy", "ours", "kept"), bound=0.5, at="least"),
    Target(
        name="an environment that raises, s until the command has ended",
        path=("breaks", "ours", "seconds_until_it_ends"),
        bound=1.0,
    ),
    Target(
        name="steps trained as told, a step sampled",
        path=("ppo", "ours", "trained_as_told_per_env_step"),
        bound=1.0,
    ),
)
