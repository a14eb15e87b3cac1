"""Greedy evaluation: finished episodes of a policy that does not explore."""

from __future__ import annotations

import numpy as np

from rollstream.acting.policy import Policy
from rollstream.acting.policy_set import PolicySet
from rollstream.envs import VectorEnvironment
from rollstream.errors import ConfigError
from rollstream.spaces import Columns, Episodes

__all__ = ["evaluate"]

MAX_STEPS = 1_000_000
"""Vector steps after which an evaluation gives up: an environment without an episode end would never finish."""


def evaluate(policy: Policy | PolicySet, environment: VectorEnvironment, *, episodes: int) -> Episodes:
    """Play `episodes` episodes with the most probable actions; each copy of the environment plays its equal share.

    Taking equally many from each copy keeps short episodes from being counted more often than long ones.

    Args:
        environment: freshly made; its number of copies divides `episodes`.
    """
    share, rest = divmod(episodes, environment.envs)
    if rest:
        raise ConfigError(f"{episodes} evaluation episodes cannot be shared by {environment.envs} environments; use a divisor")
    returns: list[list[float]] = [[] for _ in range(environment.envs)]
    lengths: list[list[int]] = [[] for _ in range(environment.envs)]
    total = np.zeros(environment.envs)
    steps = np.zeros(environment.envs, np.int64)
    resetting = np.zeros(environment.envs, bool)
    first = np.ones(environment.envs, bool)
    observation: Columns = environment.reset()
    for _ in range(MAX_STEPS):
        if all(len(found) >= share for found in returns):
            break
        policy.begin(first=first, over=resetting)
        step = environment.step(policy.greedy(observation))
        counted = ~resetting
        total[counted] += step.reward[counted]
        steps[counted] += 1
        ended = (step.terminated | step.truncated) & counted
        for index in np.flatnonzero(ended):
            if len(returns[index]) < share:
                returns[index].append(float(total[index]))
                lengths[index].append(int(steps[index]))
        total[ended] = 0.0
        steps[ended] = 0
        first = resetting if environment.resets_on_next_step else ended
        resetting = ended if environment.resets_on_next_step else np.zeros_like(ended)
        observation = step.observation
    return Episodes(
        returns=np.concatenate([np.asarray(found, np.float64) for found in returns]),
        lengths=np.concatenate([np.asarray(found, np.int64) for found in lengths]),
    )
