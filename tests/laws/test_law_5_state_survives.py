"""Law 5: state survives. After a kill the flow goes on from its last save: buffers, schedules, counters that never run backwards.

RLlib Flow: operator state and items under way are lost with the plan, and the counters restart: 8000, then 4000.
"""

from __future__ import annotations

import json
from typing import Any

from rollstream.checkpoint.tree import join, split
from rollstream.flow import (
    ActorFragment,
    Actors,
    Description,
    InlineEdges,
    Queue,
    Runner,
    Stream,
    advantages,
    publish,
    union,
    update,
)
from rollstream.flow.toy import ToyActor, ToyLearner
from rollstream.metrics import Counters
from rollstream.metrics.counters import env_steps_in_flight
from rollstream.spaces import Batch


def flow() -> Stream[Any]:
    """Everything that remembers: a ring, a buffer, a schedule, turns, a throttle, a window of reports."""
    queue: Queue[Batch] = Queue(name="train", bound_items=4)
    rollouts = Actors(count=2).rollouts(steps=4).for_each(advantages(discount=0.9, gae_lambda=0.9)).gather_async(in_flight=4)
    filled = rollouts.mix_replay(slots=4, share=0.5, seed=1).batch(steps=24).enqueue(queue)
    learned = queue.dequeue().for_each(update()).for_each(publish(every_updates=3))
    return union(filled, learned, mode="round_robin", weights=[1, 0.5], emit=learned).report(every_s=0)


class Cell:
    """Actors and a learner in memory; `kill` loses all but what was saved."""

    def __init__(self) -> None:
        self.learner = ToyLearner()
        self.seen: dict[str, int] = {}
        self.runner = self.started()

    def started(self) -> Runner:
        described = Description(flow())
        actors = [ToyActor(actor=f"actor-{number}", version=self.learner.version) for number in range(2)]
        edges = InlineEdges([ActorFragment(described, actor) for actor in actors])
        self.learner.edges = lambda name, in_flight: edges.source(name, in_flight=in_flight)
        return Runner(described, self.learner, inline=True)

    def go(self, items: int) -> None:
        for _ in range(items):
            report = next(self.runner)
            for name, value in report.counters.items():
                assert value >= self.seen.get(name, 0), f"{name} ran backwards"
            self.seen = dict(report.counters)
            counters = self.learner.counters
            left = sum(counters.value(f"env_steps_{name}") for name in ("trained", "stored", "dropped"))
            assert counters.value("env_steps_sampled") == left + self.runner.in_flight_env_steps
            self.number = report.number

    def save(self) -> Any:
        value, arrays = split({"flow": self.runner.state(), "counters": self.learner.counters.snapshot()})
        return json.dumps(value), arrays, (self.learner.updated, self.learner.published)

    def kill(self, saved: Any) -> None:
        value, arrays, (updated, published) = saved
        state = join(json.loads(value), arrays)
        counters = Counters()
        counters.restore(state["counters"])
        self.learner = ToyLearner(counters=counters, updated=updated, published=published)
        self.seen = dict(state["counters"])
        self.runner = self.started()
        self.runner.restore(state["flow"])


def test_after_a_kill_at_any_item_the_flow_goes_on_and_its_counters_still_add_up() -> None:
    cell = Cell()
    cell.go(5)
    for further in range(6):
        saved = cell.save()
        number, trained = cell.number, cell.learner.counters.value("env_steps_trained")
        cell.go(further)  # what comes after the save is lost with the process
        cell.kill(saved)
        assert cell.learner.counters.value("env_steps_trained") == trained
        cell.go(4)
        assert cell.number == number + 4
        assert cell.learner.counters.value("env_steps_trained") > trained


def test_the_ring_goes_on_as_it_was_and_only_what_lay_in_no_buffer_is_lost_and_counted() -> None:
    cell = Cell()
    cell.go(4)
    saved = cell.save()
    ring = ring_of(cell)
    before = cell.learner.counters.value("env_steps_dropped")
    cell.go(3)
    assert ring_of(cell) != ring
    cell.kill(saved)
    assert ring_of(cell) == ring
    cell.go(10)
    lost = cell.learner.counters.value("env_steps_dropped", reason="restart")
    assert lost == env_steps_in_flight(json.loads(saved[0])["counters"])
    assert cell.learner.counters.value("env_steps_dropped") == before + lost


def ring_of(cell: Cell) -> list[tuple[str, int]]:
    """Who made the batches that may be replayed, and their numbers."""
    ring = cell.runner.state()["nodes"]["mix_replay"]["state"]["ring"]
    assert len(ring) == 4
    return [(batch["actor"], batch["sequence"]) for batch in ring]
