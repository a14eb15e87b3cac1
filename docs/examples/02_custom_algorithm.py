"""2. An algorithm of your own in 60 lines: REINFORCE with a baseline (Williams 1992), its three pages in one file.

    python docs/examples/02_custom_algorithm.py

For a cell put the pages into a package that names itself by an entry point: docs/examples/actor-critic is one.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from rollstream.algorithms import Algorithm, register
from rollstream.algorithms.settings import ActorCriticSettings, OnPolicySettings, OptimizerSettings
from rollstream.algorithms.updating import Updating
from rollstream.config import ExperimentSpec, load
from rollstream.flow import Actors, LearnerHandle, Stream, advantages, standardize
from rollstream.graph import ActorCriticPolicy
from rollstream.graph.losses import PolicyGradientLoss
from rollstream.learning import Learned
from rollstream.spaces import Batch
from rollstream_cli.inline import run
from rollstream_cli.progress import describe_report


class ReinforceConfig(OnPolicySettings, ActorCriticSettings, OptimizerSettings):
    """What can be set: what all on-policy algorithms share, with our own defaults."""

    rollout_steps: int = 32
    learning_rate: float = 5e-3
    entropy_coefficient: float = 0.01


class ReinforceAgent:
    """What is optimized: a policy with a value head. Made in the actors, where it acts, and in the learner."""

    table_names: tuple[str, ...] = ()

    def __init__(self, config: ReinforceConfig, *, observation: Any, actions: Any) -> None:
        self.config, self.actions = config, actions
        self.policy = ActorCriticPolicy(observation, actions, hidden=config.hidden, shared_torso=False)
        self.loss = PolicyGradientLoss(self.policy)
        self.extra_columns = self.policy.extra_columns

    def tables(self, rows: Any) -> dict[str, Any]:
        return {}

    def learning(self, *, seed: int) -> ReinforceLearning:
        return ReinforceLearning(self, seed=seed)


class ReinforceLearning(Updating):
    """The learning half: one pass over each round. What is saved and published, `Updating` knows."""

    def __init__(self, agent: ReinforceAgent, *, seed: int) -> None:
        self.config = agent.config
        super().__init__("reinforce", agent.loss, agent.config, batch_rows=256, seed=seed)

    def learn(self, batch: Batch, *, env_steps: int) -> Learned:
        config, before = self.config, self.update.updates
        metrics = self.update.update_many(
            batch.columns,
            epochs=1,
            generator=np.random.default_rng(env_steps),  # a function of the steps, so a resumed run needs nothing saved
            learning_rate=self.rate(env_steps=env_steps),
            value_coefficient=config.value_coefficient,
            entropy_coefficient=config.entropy_coefficient,
        )
        return Learned(updates=self.update.updates - before, metrics=metrics)


def flow(config: ReinforceConfig, *, actors: Actors, learner: LearnerHandle) -> Stream[Any]:
    """What flows where: rewards to the end of the rollout, minus the baseline; one update a round."""
    return (
        actors.rollouts(steps=config.rollout_steps)
        .for_each(advantages(discount=config.discount, gae_lambda=1.0))
        .gather_sync()
        .for_each(standardize("advantage"))
        .for_each(learner.update())
        .for_each(learner.publish())
        .report(every_s=config.report_every_s)
    )


def main() -> None:
    """Train it on CartPole-v1."""
    register(
        Algorithm(name="reinforce", package=__name__, settings="ReinforceConfig", agent="ReinforceAgent", needs_replay=False)
    )
    document = {"algorithm": "reinforce", "environment": {"id": "CartPole-v1"}, "stop": {"env_steps": 40_000}}
    spec = load(ExperimentSpec, document, what="experiment")
    with tempfile.TemporaryDirectory() as runs:
        summary = run(spec, runs_dir=Path(runs), report=lambda report: print(describe_report(report)))
    print(f"mean return of {summary['evaluation_episodes']} greedy episodes: {summary['mean_return']:.0f}")


if __name__ == "__main__":
    main()
