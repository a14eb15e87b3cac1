"""Law 2: no in-band control values. Waiting is blocking; whatever a stream carries is an item, and nothing else is.

RLlib Flow: every operator of every user must pass `_NextValueNotReady`, an exception used as a value, through by hand.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rollstream.flow import Actors, Queue, Runner, Stream, union
from rollstream.flow.toy import ToyEdge, ToyLearner
from rollstream.spaces import Batch

ODD_ITEMS: tuple[Any, ...] = (
    None,
    False,
    0,
    "",
    (),
    StopIteration(),
    KeyError("a value, not an error"),
    NotImplemented,
    Exception,
    object(),
)


def as_batch(rollout: Any) -> Batch:
    raise AssertionError("runs in the actors only")


class Odd:
    """Gives the odd items one after another."""

    def __init__(self) -> None:
        self.items: Iterator[Any] = iter(ODD_ITEMS)

    def __call__(self, batch: Batch) -> Any:
        return next(self.items)


def in_both_copies(stream: Stream[Any]) -> Stream[Any]:
    first, second = stream.duplicate(2)
    return union(first, second, emit=first)


def through_a_queue(stream: Stream[Any]) -> Stream[Any]:
    queue: Queue[Any] = Queue(name="between", bound_items=2)
    drained = queue.dequeue()
    return union(stream.enqueue(queue), drained, emit=drained)


OPERATORS: dict[str, Callable[[Stream[Any]], Stream[Any]]] = {
    "for_each": lambda stream: stream.for_each(lambda item: item),
    "filter": lambda stream: stream.filter(lambda item: True),
    "window": lambda stream: stream.window(items=2).flatten(),
    "take": lambda stream: stream.take(99),
    "prefetch": lambda stream: stream.prefetch(2),
    "throttle": lambda stream: stream.throttle(every_s=0),
    "duplicate": in_both_copies,
    "queue": through_a_queue,
    "union": union,
    "union in turn": lambda stream: union(stream, mode="round_robin"),
}


def slow_edge(*, messages: int) -> tuple[ToyEdge, threading.Thread]:
    """An edge on which a message comes now and then, so that every operator has to wait between two items."""
    edge = ToyEdge(in_flight=messages)
    edge.join("actor-0")

    def send() -> None:
        pause = threading.Event()
        for number in range(messages):
            pause.wait(0.02)
            edge.send(Batch(columns={}, env_steps=1, version=1, newest_version=1, actor="actor-0", sequence=number + 1))

    return edge, threading.Thread(target=send)


@pytest.mark.parametrize("name", OPERATORS)
def test_whatever_a_step_returns_is_an_item_and_a_wait_gives_none(name: str) -> None:
    edge, sender = slow_edge(messages=len(ODD_ITEMS))
    learner = ToyLearner(edges=lambda edge_name, in_flight: edge)
    stream = Actors().rollouts(steps=1).for_each(as_batch).gather_async().for_each(Odd())
    seen: list[Any] = []

    def note(item: Any) -> Any:
        seen.append(item)
        return item

    with Runner(OPERATORS[name](stream).for_each(note), learner) as runner:
        sender.start()
        items = [next(runner) for _ in ODD_ITEMS]
        sender.join()
    assert all(item is odd for item, odd in zip(items, ODD_ITEMS, strict=True))
    assert len(seen) == len(ODD_ITEMS), "a step is called with items only, once each"
