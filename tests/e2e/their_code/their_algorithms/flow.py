"""What flows where: as in PPO, with a step of the user's in the actors."""

from __future__ import annotations

from typing import Any

from rollstream.flow.steps import advantages, standardize

__all__ = ["flow"]


def shape_reward(rollout: Any) -> Any:
    raise KeyError("speed")


def keep(rollout: Any) -> Any:
    return rollout


def flow(config: Any, *, actors: Any, learner: Any) -> Any:
    if config.fault == "flow":
        raise NameError("there is no such step")
    return (
        actors.rollouts(steps=config.rollout_steps)
        .for_each(shape_reward if config.fault == "actor_step" else keep)
        .for_each(advantages(discount=config.discount, gae_lambda=config.gae_lambda))
        .gather_sync()
        .for_each(standardize("advantage"))
        .for_each(learner.update())
        .for_each(learner.publish())
        .report(every_s=config.report_every_s)
    )
