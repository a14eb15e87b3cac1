"""O64 open-instruct PR#1738: an actor that froze for ten updates and then pushes must not feed the learner with what it has."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from rollstream.flow import Actors, Runner, filter_lag, update
from rollstream.flow.toy import ToyLearner
from rollstream.spaces import Batch, Rollout


@dataclass
class Edge:
    stop: threading.Event
    messages: list[Batch]
    acknowledged: list[Batch] = field(default_factory=list)

    def next(self, timeout_s: float) -> Batch | None:
        if not self.messages:
            self.stop.set()
            return None
        return self.messages.pop(0)

    def at_hand(self) -> Batch | None:
        return None

    def ack(self, *batches: Batch) -> None:
        self.acknowledged.extend(batches)

    def live_actors(self) -> set[str]:
        return {"frozen", "healthy"}

    def ready(self) -> bool:
        return True


def as_batch(rollout: Rollout) -> Batch:
    raise AssertionError("runs in the actors only")


def test_o64_rollouts_beyond_the_bound_are_dropped_counted_and_their_actor_goes_on() -> None:
    learner = ToyLearner(published=11)
    sent = [
        Batch(columns={}, env_steps=8, version=version, newest_version=version, actor=actor, sequence=1)
        for actor, version in (("frozen", 1), ("healthy", 11), ("frozen", 7), ("frozen", 6))
    ]
    edge = Edge(learner.stop, list(sent))
    learner.edges = lambda name, in_flight: edge
    shards = Actors(count=2).rollouts(steps=8).for_each(as_batch)
    trained = list(Runner(shards.gather_async().filter(filter_lag(max_lag=4)).for_each(update()), learner))
    assert [batch.version for batch in trained] == [11, 7]
    assert learner.counters.value("env_steps_dropped", reason="max_lag") == 16
    assert learner.counters.value("env_steps_stale", reason="frozen") == 16
    assert learner.counters.value("env_steps_stale", reason="healthy") == 0
    assert learner.counters.value("env_steps_trained") == 16
    assert edge.acknowledged == sent
