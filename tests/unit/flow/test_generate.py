"""Sources in the actor that make their items themselves, with weights of their own choice."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rollstream.errors import ConfigError, FlowError, NonFiniteError
from rollstream.flow import ActorFragment, Actors, Description, InlineEdges, Runner, Step, update
from rollstream.flow.toy import ToyActor, ToyLearner
from rollstream.spaces import Batch


class Probing:
    """Acts with other weights than those that were pulled."""

    def __init__(self, side: Any) -> None:
        self.side = side
        self.calls: list[Any] = []
        self.closed = False

    def __call__(self, nothing: None) -> Batch:
        self.calls.append(nothing)
        version = self.side.pull()
        noise = self.side.generator("noise").standard_normal(2).astype(np.float32)
        self.side.act_with({"w": self.side.tensors()["w"] + noise})
        rollout = self.side.collect(steps=3, pull=False)
        columns = {"w": self.side.tensors()["w"][None]}
        return Batch(
            columns=columns,
            env_steps=rollout.env_steps,
            version=version,
            newest_version=version,
            episodes=rollout.episodes,
        )

    def close(self) -> None:
        self.closed = True


def probing() -> Step:
    return Step(name="probing", bind=Probing, where="actor", gives="batch", settings={"steps": 3})


def test_a_generator_makes_the_items_of_its_actor() -> None:
    flow = Description(Actors(count=2).generate(probing()).gather_sync().for_each(update()))
    assert flow.nodes[0].kind == "generate"
    assert flow.nodes[0].name == "probing"
    fragments = [ActorFragment(flow, ToyActor(actor=f"actor-{ordinal}", environments=2)) for ordinal in range(2)]
    learner, edges = ToyLearner(), InlineEdges(fragments)
    learner.edges = lambda name, in_flight: edges.source(name, in_flight=in_flight)
    item = next(Runner(flow, learner, inline=True))
    assert item.columns["w"].shape == (2, 2)
    assert not np.array_equal(item.columns["w"][0], item.columns["w"][1])  # each actor has random numbers of its own
    assert learner.counters.value("env_steps_sampled") == learner.counters.value("env_steps_trained") == 12
    assert learner.counters.value("episodes") == 4
    assert fragments[0].meters["probing"].env_steps == 6


def test_what_was_given_acts_until_the_next_pull() -> None:
    side = ToyActor()
    side.act_with({"w": np.ones(2, np.float32)}, version=7)
    assert side.collect(steps=1, pull=False).version == 7
    assert side.tensors()["w"].tolist() == [1, 1]
    assert side.collect(steps=1).version == 1
    assert side.tensors()["w"].tolist() == [0, 0]
    with pytest.raises(NonFiniteError, match="parameter w is not finite; weights refused"):
        side.act_with({"w": np.full(2, np.nan, np.float32)})


def test_a_generator_is_closed_with_its_fragment() -> None:
    made: list[Probing] = []

    def bind(side: Any) -> Probing:
        made.append(Probing(side))
        return made[0]

    flow = Description(Actors().generate(Step(name="probing", bind=bind, where="actor")).gather_async())
    fragment = ActorFragment(flow, ToyActor())
    fragment.run_once("gather_async")
    fragment.close()
    assert made[0].closed
    assert made[0].calls == [None]


def test_an_error_of_a_generator_names_it() -> None:
    def bind(side: Any) -> Any:
        return lambda nothing: 1 / 0

    flow = Description(Actors().generate(Step(name="dividing", bind=bind, where="actor")).gather_async())
    with pytest.raises(FlowError, match=r"operator 'dividing' in actor 'actor-0' .* failed: ZeroDivisionError"):
        ActorFragment(flow, ToyActor()).run_once("gather_async")


def test_a_generator_must_make_batches() -> None:
    flow = Description(
        Actors().generate(Step(name="texts", bind=lambda side: lambda nothing: "text", where="actor")).gather_async()
    )
    with pytest.raises(FlowError, match="gave a str; a source in the actor makes a rollstream.spaces.Batch"):
        ActorFragment(flow, ToyActor()).run_once("gather_async")


def test_only_a_step_that_makes_items_can_generate() -> None:
    with pytest.raises(ConfigError, match="generate takes a step that makes items in the actor"):
        Actors().generate(update())
