"""What an operator of a flow costs by itself, for each item: chains of it over a source that costs next to nothing.

cost of for_each = (seconds of source + 4 for_each - seconds of source) / 4 / items

Seconds are those that the processor worked for this process, in all of its threads: what others do on the machine meanwhile is no cost
of an operator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from rollstream.clock import SystemClock
from rollstream.edges import READ_MESSAGES
from rollstream.flow import Actors, LearnerHandle, Queue, Runner, Stream, union
from rollstream.flow.toy import ToyLearner
from rollstream.spaces import Batch
from rollstream_learner.bench.timing import cpu_s

__all__ = ["operator_costs"]

CHAINED = 4
"""Operators of a kind in one chain: their sum stands out from what the source costs."""
REPEATS = 40
"""Many short runs: some fall into moments in which nothing else takes the caches and the other half of the core."""
ENV_STEPS = 4
Build = Callable[[Stream[Any]], Stream[Any]]


def operator_costs(items: int = 500) -> Mapping[str, float]:
    """Microseconds of a processor for an item and an operator, the best of many runs of `items` items each.

    `runner and gather_async` is the pull of one item from outside, the gather and its bookkeeping included; it is subtracted from
    the others, with which its runs take turns, so that they see more than one moment of the machine.
    Those `in threads` include the switches between threads; all others run inline, in one thread.
    """
    costs: dict[str, float] = {}
    alone_us: list[float] = []
    for name, (build, operators) in _INLINE.items():
        costs[name], source_us = _cost_us(build, items, operators=operators, inline=True)
        alone_us.append(source_us)
    for name, (build, operators) in _IN_THREADS.items():
        costs[f"{name} in threads"], source_us = _cost_us(build, items, operators=operators, inline=False)
        alone_us.append(source_us)
    return {name: round(cost_us, 3) for name, cost_us in {"runner and gather_async": min(alone_us), **costs}.items()}


def _cost_us(build: Build, items: int, *, operators: int, inline: bool) -> tuple[float, float]:
    """Microseconds of one of the operators, and of the source alone. Runs of both take turns, so that a machine that slows down slows
    both down."""
    without_s, with_s = [], []
    for _ in range(REPEATS):
        without_s.append(_seconds(_nothing, items, inline=True))
        with_s.append(_seconds(build, items, inline=inline))
    per_item = 1e6 / items
    return max(0.0, per_item * (min(with_s) - min(without_s)) / operators), per_item * min(without_s)


def _nothing(stream: Stream[Any]) -> Stream[Any]:
    return stream


def _as_batch(rollout: Any) -> Batch:
    raise AssertionError("the source of this measurement makes batches itself")


def _same(item: Any) -> Any:
    return item


def _true(item: Any) -> bool:
    return True


def _members(item: Any) -> tuple[Any, ...]:
    return (item,)


def _source() -> Stream[Batch]:
    return Actors().rollouts(steps=1).for_each(_as_batch).gather_async()


def _chain(step: Build) -> tuple[Build, int]:
    def build(stream: Stream[Any]) -> Stream[Any]:
        for _ in range(CHAINED):
            stream = step(stream)
        return stream

    return build, CHAINED


def _duplicated(stream: Stream[Any]) -> Stream[Any]:
    first, second = stream.duplicate(2)
    return union(first, second, mode="round_robin", emit=first)


def _duplicated_in_threads(stream: Stream[Any]) -> Stream[Any]:
    first, second = stream.duplicate(2)
    return union(first, second, emit=first)


def _queued(mode: Any) -> Build:
    def build(stream: Stream[Any]) -> Stream[Any]:
        queue: Queue[Any] = Queue(name="between", bound_items=64)
        drained = queue.dequeue()
        return union(stream.enqueue(queue), drained, mode=mode, emit=drained)

    return build


_INLINE: Mapping[str, tuple[Build, int]] = {
    "for_each": _chain(lambda stream: stream.for_each(_same)),
    "filter": _chain(lambda stream: stream.filter(_true)),
    "for_each and flatten": (_chain(lambda stream: stream.for_each(_members).flatten())[0], 2 * CHAINED),
    "batch": _chain(lambda stream: stream.batch(steps=1)),
    "window": _chain(lambda stream: stream.window(items=1)),
    "take": _chain(lambda stream: stream.take(1_000_000_000)),
    "throttle": _chain(lambda stream: stream.throttle(every_s=0)),
    "mix_replay": _chain(lambda stream: stream.mix_replay(slots=8, share=0)),
    "update": _chain(lambda stream: stream.for_each(LearnerHandle().update())),
    "zip_with_source": (lambda stream: stream.zip_with_source(), 1),
    "duplicate, copies and union in turn": (_duplicated, 4),
    "enqueue, dequeue and union in turn": (_queued("round_robin"), 3),
    "report": (lambda stream: stream.report(every_s=1e9), 1),
}
_IN_THREADS: Mapping[str, tuple[Build, int]] = {
    "prefetch": (lambda stream: stream.prefetch(64), 1),
    "enqueue, dequeue and union": (_queued("as_ready"), 3),
    "duplicate, copies and union": (_duplicated_in_threads, 4),
}


class _Messages:
    """An edge that has `count` messages, then stops the learner. As on a busy edge, one question brings `READ_MESSAGES`."""

    def __init__(self, learner: ToyLearner, *, count: int) -> None:
        self._learner = learner
        self._left = count
        self._batch = Batch(
            columns={"x": np.zeros(ENV_STEPS, np.float32)}, env_steps=ENV_STEPS, version=1, newest_version=1, actor="actor-0"
        )

    def next(self, timeout_s: float) -> Batch | None:
        if self._left == 0:
            self._learner.stop.set()
            return None
        self._left -= 1
        return self._batch

    def at_hand(self) -> Batch | None:
        if self._left % READ_MESSAGES == 0:
            return None
        self._left -= 1
        return self._batch

    def ack(self, *batches: Batch) -> None:
        """Nobody waits for it."""

    def live_actors(self) -> set[str]:
        return {"actor-0"}

    def ready(self) -> bool:
        return True


class _Learner(ToyLearner):
    """Learns nothing, at once."""

    def learn(self, batch: Batch, *, policy: str = "") -> Batch:
        return batch


def _seconds(build: Build, items: int, *, inline: bool) -> float:
    learner = _Learner(clock=SystemClock())
    learner.edges = lambda name, in_flight: _Messages(learner, count=items)
    with Runner(build(_source()), learner, inline=inline) as runner:
        began_s = cpu_s()
        for _ in runner:
            continue
        return cpu_s() - began_s
