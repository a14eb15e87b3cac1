"""O58 ray#58697: weights that never reach the actors were noticed by nothing but odd ratios. Here every report tells the lag, every row
its version, and `max_lag` bounds what is learned from."""

from __future__ import annotations

from typing import Any

import pytest

from rollstream.algorithms.impala.config import ImpalaConfig
from rollstream.algorithms.impala.flow import flow
from rollstream.clock import SystemClock
from rollstream.flow import ActorFragment, Actors, Description, InlineEdges, LearnerHandle, Runner
from rollstream.flow.toy import ToyActor, ToyLearner
from rollstream.metrics import Report

STEPS = 6
"""Environment steps of one rollout: 3 vector steps of 2 environments."""


def run(*, broken: bool, reports: int) -> tuple[list[Report], ToyLearner]:
    """IMPALA in one thread; a broken actor keeps acting by version 1."""
    config = ImpalaConfig(rollout_steps=3, batch_steps=STEPS, replay_share=0, publish_every_updates=1, report_every_s=1e-9)
    description = Description(flow(config, actors=Actors(count=1), learner=LearnerHandle()))
    learner = ToyLearner(clock=SystemClock())
    version = (lambda: 1) if broken else learner.version
    edges = InlineEdges([ActorFragment(description, ToyActor(version=version))])
    learner.edges = lambda name, in_flight: edges.source(name, in_flight=in_flight)
    with Runner(description, learner, inline=True) as runner:
        return [next(runner) for _ in range(reports)], learner


def test_o58_an_actor_without_new_weights_shows_as_a_lag_that_grows() -> None:
    reports, learner = run(broken=True, reports=5)
    lags = [report.max_lag for report in reports]
    assert lags == sorted(lags)
    assert lags[-1] == 4
    assert {int(version) for batch in learner.learned for version in batch.columns["version"]} == {1}


def test_o58_an_actor_with_new_weights_shows_none() -> None:
    reports, learner = run(broken=False, reports=5)
    assert [report.max_lag for report in reports] == [0] * 5
    assert [set(batch.columns["version"].tolist()) for batch in learner.learned] == [{number} for number in range(1, 6)]


def test_o58_nothing_older_than_the_bound_is_learned_from_and_its_actor_is_named(caplog: pytest.LogCaptureFixture) -> None:
    learner = ToyLearner(published=9)
    config = ImpalaConfig(rollout_steps=3, batch_steps=STEPS, replay_share=0, max_lag=4)
    description = Description(flow(config, actors=Actors(count=1), learner=LearnerHandle()))
    fragment = ActorFragment(description, ToyActor(version=lambda: 1))
    messages = [fragment.run_once(fragment.edges[0].name) for _ in range(3)]

    class Edge:
        def next(self, timeout_s: float) -> Any:
            if not messages:
                learner.stop.set()
                return None
            return messages.pop(0)

        def at_hand(self) -> Any: ...

        def ack(self, *batches: Any) -> None: ...

        def live_actors(self) -> set[str]:
            return {"actor-0"}

        def ready(self) -> bool:
            return True

    learner.edges = lambda name, in_flight: Edge()
    assert list(Runner(description, learner)) == []
    assert learner.learned == []
    assert learner.counters.value("env_steps_dropped", reason="max_lag") == 3 * STEPS
    assert [record.message.split(":")[0] for record in caplog.records] == [
        "actor-0 acted by weights 8 versions old, max_lag is 4"
    ]  # once, not with each message
