"""Law 4: a flow has names and can be printed, drawn and profiled, at work: rates, depth, and who waits for whom.

RLlib Flow: a chain of anonymous generators; nothing can be listed, and nobody is told what a plan waits for.
"""

from __future__ import annotations

import json
import threading
from typing import Any

from rollstream.clock import SystemClock
from rollstream.flow import ActorFragment, Actors, Description, InlineEdges, Queue, Runner, Stream, advantages, union, update
from rollstream.flow.toy import ToyActor, ToyEdge, ToyLearner


def flow() -> Stream[Any]:
    queue: Queue[Any] = Queue(name="train", bound_items=2)
    filled = Actors().rollouts(steps=4).for_each(advantages(discount=0.9, gae_lambda=0.9)).gather_async().enqueue(queue)
    learned = queue.dequeue().for_each(update(), name="learn").report(every_s=0)
    return union(filled, learned, emit=learned)


def test_every_node_has_a_name_a_place_and_counts_of_its_own() -> None:
    learner = ToyLearner(clock=SystemClock())
    described = Description(flow())
    edges = InlineEdges([ActorFragment(described, ToyActor(clock=SystemClock()))])
    learner.edges = lambda name, in_flight: edges.source(name, in_flight=in_flight)
    with Runner(described, learner, inline=True) as runner:
        for _ in range(5):
            next(runner)
        view = runner.describe()
    nodes = {node.name: node for node in view.nodes}
    assert list(nodes) == [
        "rollouts",
        "advantages",
        "gather_async",
        "enqueue_train",
        "dequeue_train",
        "learn",
        "report",
        "union",
    ]
    assert all(node.file == __file__ and node.line > 0 for node in view.nodes)
    assert nodes["learn"].items == nodes["report"].items == 5
    assert nodes["learn"].items_per_s is not None
    assert nodes["dequeue_train"].bound_items == 2
    assert json.loads(json.dumps(view.to_json()))["nodes"][5]["name"] == "learn"
    drawn = view.draw()
    assert all(name in drawn for name in nodes)


def test_who_waits_says_so_while_it_waits() -> None:
    edge = ToyEdge(in_flight=1)
    edge.join("actor-3")
    learner = ToyLearner(edges=lambda name, in_flight: edge, clock=SystemClock())
    runner = Runner(flow(), learner)
    puller = threading.Thread(target=lambda: list(runner))
    puller.start()
    pause = threading.Event()
    wanted = {"gather_async": "messages on edge gather_async of actor-3", "dequeue_train": "items of queue train"}
    for _ in range(200):
        waits = {node.name: node.waits_for for node in runner.describe().nodes if node.waits_for}
        if waits == wanted:
            break
        pause.wait(0.05)
    learner.stop.set()
    puller.join(20)
    runner.close()
    assert waits == wanted
