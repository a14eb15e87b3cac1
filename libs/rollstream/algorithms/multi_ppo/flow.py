"""What flows where in PPO for several agents: each rollout is shared out to the policies, and each learns from its own rows."""

from __future__ import annotations

from typing import Any

from rollstream.algorithms.multi_ppo.config import MultiPpoConfig
from rollstream.flow import Actors, LearnerHandle, Shards, Stream, union
from rollstream.flow.steps import advantages, concatenate, select_policies, standardize
from rollstream.spaces import Rollout

__all__ = ["flow"]


def flow(config: MultiPpoConfig, *, actors: Actors, learner: LearnerHandle) -> Stream[Any]:
    """A branch a policy. The first accounts for the environment steps; a rollout may be one publication old."""
    sampled = actors.rollouts(steps=config.rollout_steps)
    branches = [_learn(config, sampled, policy, actors=actors, learner=learner) for policy in config.policies]
    return union(*branches, mode="round_robin").report(every_s=config.report_every_s)


def _learn(
    config: MultiPpoConfig, sampled: Shards[Rollout], policy: str, *, actors: Actors, learner: LearnerHandle
) -> Stream[Any]:
    return (
        sampled.for_each(select_policies(policy))
        .for_each(advantages(discount=config.discount, gae_lambda=config.gae_lambda))
        .gather_async(in_flight=1, name=policy)
        .window(items=actors.count)
        .for_each(concatenate())
        .for_each(standardize("advantage"))
        .for_each(learner.update(policy=policy))
        .for_each(learner.publish())
    )
