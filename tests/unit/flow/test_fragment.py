"""The actor's part: from the rollout to the message, with what it dropped told to the learner."""

from __future__ import annotations

from typing import Any

import pytest

from rollstream.errors import ConfigError
from rollstream.flow import (
    ActorFragment,
    Actors,
    Description,
    InlineEdges,
    Runner,
    Step,
    TableHandle,
    advantages,
    store_into,
    union,
    update,
)
from rollstream.flow.toy import ToyActor, ToyLearner, ToyTable
from rollstream.spaces import Batch, Rollout

GAE = advantages(discount=0.9, gae_lambda=0.9)


def test_messages_carry_the_actor_and_count_from_one() -> None:
    flow = Description(Actors().rollouts(steps=3).for_each(GAE).gather_async())
    fragment = ActorFragment(flow, ToyActor(actor="actor-5", environments=2))
    first, second = fragment.run_once("gather_async"), fragment.run_once("gather_async")
    assert first is not None
    assert second is not None
    assert [(batch.actor, batch.sequence, batch.env_steps) for batch in (first, second)] == [("actor-5", 1, 6), ("actor-5", 2, 6)]
    assert fragment.meters["advantages"].items == 2
    assert fragment.meters["rollouts"].env_steps == 12


class EveryThird:
    """True for every third rollout."""

    def __init__(self) -> None:
        self.seen = 0

    def __call__(self, rollout: Rollout) -> bool:
        self.seen += 1
        return self.seen % 3 == 0


def test_what_the_actor_drops_is_told_by_its_next_message_and_counted_by_the_learner() -> None:
    flow = Description(
        Actors().rollouts(steps=3).filter(EveryThird(), name="every_third").for_each(GAE).gather_async().for_each(update())
    )
    fragment = ActorFragment(flow, ToyActor(environments=2))
    assert fragment.run_once("gather_async") is None
    assert fragment.run_once("gather_async") is None
    batch = fragment.run_once("gather_async")
    assert batch is not None
    assert batch.metrics == {"env_steps_dropped.every_third": 12.0}
    assert len(batch.episodes) == 6

    learner = ToyLearner()
    edges = InlineEdges([fragment])
    learner.edges = lambda name, in_flight: edges.source(name, in_flight=in_flight)
    runner = Runner(flow, learner, inline=True)
    (item,) = [next(runner)]
    assert not [name for name in item.metrics if name.startswith("env_steps_dropped")]
    assert learner.counters.value("env_steps_dropped", reason="every_third") == 12
    assert learner.counters.value("env_steps_sampled") == 18
    assert learner.counters.value("env_steps_trained") == 6
    assert learner.counters.value("episodes") == 6


def test_a_flow_may_have_several_edges() -> None:
    table = TableHandle(name="replay")
    store = Actors().rollouts(steps=1).for_each(store_into(table, 1)).gather_async(name="stored")
    fresh = Actors().rollouts(steps=2).for_each(GAE).gather_async(name="fresh")
    fragment = ActorFragment(Description(union(store, fresh)), ToyActor(tables={"replay": ToyTable()}, environments=1))
    batches = [fragment.run_once(edge.name) for edge in fragment.edges]
    assert [batch.env_steps for batch in batches if batch is not None] == [1, 2]
    assert fragment.ready("stored")


def test_an_unknown_edge_is_refused() -> None:
    flow = Description(Actors().rollouts(steps=3).for_each(GAE).gather_async())
    with pytest.raises(ConfigError, match="the flow has no edge 'other'; it has: gather_async"):
        ActorFragment(flow, ToyActor()).run_once("other")


def test_steps_of_the_actor_are_closed_with_the_fragment() -> None:
    closed: list[bool] = []

    class Holding:
        def __call__(self, item: Any) -> Batch:
            return Batch(columns={}, env_steps=item.env_steps, version=1, newest_version=1)

        def close(self) -> None:
            closed.append(True)

    step = Step(name="holding", bind=lambda side: Holding(), where="actor")
    fragment = ActorFragment(Description(Actors().rollouts(steps=1).for_each(step).gather_async()), ToyActor())
    fragment.run_once("gather_async")
    fragment.close()
    assert closed == [True]
