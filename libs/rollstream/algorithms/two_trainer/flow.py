"""What flows where with two trainers: each rollout goes two ways, the rows of PPO's agents one and those of DQN's agents the other."""

from __future__ import annotations

from typing import Any

from rollstream.algorithms.two_trainer.config import TwoTrainerConfig
from rollstream.flow import Actors, LearnerHandle, Stream, TableHandle, union
from rollstream.flow.steps import advantages, return_priorities, select_policies, standardize, store_into
from rollstream.replay import NStep

__all__ = ["flow"]


def flow(config: TwoTrainerConfig, *, actors: Actors, learner: LearnerHandle, replay: TableHandle) -> Stream[Any]:
    """PPO's rounds account for the environment steps and publish both policies; DQN learns from its table meanwhile."""
    sampled = actors.rollouts(steps=config.ppo.rollout_steps)
    ppo = (
        sampled.for_each(select_policies("ppo"))
        .for_each(advantages(discount=config.ppo.discount, gae_lambda=config.ppo.gae_lambda))
        .gather_sync(name="ppo")
        .for_each(standardize("advantage"))
        .for_each(learner.update(policy="ppo"))
        .for_each(learner.publish())
    )
    store = (
        sampled.for_each(select_policies("dqn")).for_each(store_into(replay, NStep(config.dqn.n_step))).gather_async(name="dqn")
    )
    dqn = (
        replay.samples(batch_items=config.dqn.sample_items, prefetch=1)
        .for_each(learner.update(policy="dqn"))
        .for_each(return_priorities(replay))
        .for_each(learner.sync_target(every_updates=config.dqn.target_sync_every_updates, policy="dqn"))
    )
    return union(ppo, store, dqn, mode="as_ready").report(every_s=config.report_every_s)
