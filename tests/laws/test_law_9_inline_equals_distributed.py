"""Law 9: one process and one thread, the same numbers. A breakpoint in a step just works, and what it shows is what a cell does.

RLlib has a local mode with other code paths; its results differ from those of a cluster.
"""

from __future__ import annotations

import threading
from typing import Any

import pytest

from rollstream.flow import ActorFragment, Actors, Description, InlineEdges, Runner, Stream, advantages, publish, union, update
from rollstream.flow.toy import ToyActor, ToyLearner

TRAIN = (
    "train", "ppo", "--env", "CartPole-v1", "--seed", "3", "--actors", "1", "--envs-per-actor", "4", "--stop-steps", "1500",
    "--set", "rollout_steps=64", "--set", "report_every_s=0.000001", "--set", "evaluation_episodes=0", "--json", "-",
)  # fmt: skip
"""A report after every round, so both stop after the same one."""


@pytest.mark.timeout(300)
def test_inline_and_distributed_training_end_with_the_same_weights(shell: Any) -> None:
    inline = shell.json(*TRAIN, "--inline")
    distributed = shell.json(*TRAIN)
    assert inline["env_steps"] == distributed["env_steps"] >= 1_500
    assert inline["updates"] == distributed["updates"]
    assert inline["weights_sha256"] == distributed["weights_sha256"]
    assert inline["training_mean_return"] == distributed["training_mean_return"]


def test_inline_everything_runs_in_the_calling_thread_actors_included() -> None:
    seen: set[str] = set()

    def note(item: Any) -> Any:
        seen.add(threading.current_thread().name)
        return item

    class Noting(ToyActor):
        def collect(self, *, steps: int, **settings: Any) -> Any:
            note(None)
            return super().collect(steps=steps, **settings)

    first, second = (
        Actors().rollouts(steps=2).for_each(advantages(discount=0.9, gae_lambda=0.9)).gather_async().prefetch(4).duplicate(2)
    )
    learned: Stream[Any] = first.for_each(note).for_each(update()).for_each(publish())
    flow = Description(union(learned, second.for_each(note).prefetch(2), emit=learned))
    learner = ToyLearner()
    edges = InlineEdges([ActorFragment(flow, Noting(version=learner.version))])
    learner.edges = lambda name, in_flight: edges.source(name, in_flight=in_flight)
    with Runner(flow, learner, inline=True) as runner:
        for _ in range(9):
            next(runner)
        assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("flow-")]
    assert seen == {threading.current_thread().name}
