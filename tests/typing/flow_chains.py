"""Chains of a flow as a type checker sees them; `tests/unit/flow/test_types.py` runs mypy over this page.

A line that ends in `# refused: words` must be an error that contains the words; every other line must have none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, assert_type

from rollstream.flow import (
    Actors,
    LearnerHandle,
    Queue,
    Shards,
    Step,
    Stream,
    TableHandle,
    advantages,
    concatenate,
    union,
    update,
)
from rollstream.metrics import Report
from rollstream.spaces import Batch, Rollout


def rows_of(batch: Batch) -> int:
    return batch.rows


def is_large(batch: Batch) -> bool:
    return batch.rows > 8


def halves(batch: Batch) -> Sequence[Batch]:
    return [batch]


class Scaled:
    """A user's step: a small class."""

    def __call__(self, rows: int) -> float:
        return rows / 2


def bound(side: object) -> Any:
    return rows_of


COUNTING: Step[Batch, int] = Step(name="counting", bind=bound)
PLAIN = Step(name="plain", bind=bound)
GAE = advantages(discount=0.9, gae_lambda=0.9)


def inferred(actors: Actors, learner: LearnerHandle, table: TableHandle) -> Stream[Report]:
    rollouts = actors.rollouts(steps=8)
    assert_type(rollouts, Shards[Rollout])
    shards = rollouts.for_each(GAE)
    assert_type(shards, Shards[Batch])
    assert_type(shards.filter(is_large), Shards[Batch])
    stream = shards.gather_sync()
    assert_type(stream, Stream[Batch])
    assert_type(shards.gather_async().zip_with_source(), Stream[tuple[str, Batch]])
    assert_type(stream.for_each(rows_of), Stream[int])
    assert_type(stream.for_each(rows_of).for_each(Scaled()), Stream[float])
    assert_type(stream.for_each(lambda batch: batch.rows), Stream[int])
    assert_type(stream.for_each(COUNTING), Stream[int])
    assert_type(stream.for_each(PLAIN), Stream[Any])
    assert_type(stream.filter(is_large).for_each(update()), Stream[Batch])
    assert_type(stream.for_each(learner.update()), Stream[Batch])
    assert_type(stream.for_each(learner.update(policy="main")).for_each(learner.publish()).filter(is_large), Stream[Batch])
    assert_type(table.samples(batch_items=4).for_each(learner.sync_target(every_updates=2)).for_each(rows_of), Stream[int])
    assert_type(stream.for_each(learner.evaluate(every_updates=2, episodes=1)).window(items=2), Stream[tuple[Batch, ...]])
    assert_type(stream.batch(steps=8).take(3).prefetch(2).throttle(every_steps=4), Stream[Batch])
    assert_type(stream.window(items=2), Stream[tuple[Batch, ...]])
    assert_type(stream.window(items=2).for_each(concatenate()), Stream[Batch])
    assert_type(stream.window(items=2).flatten(), Stream[Batch])
    assert_type(stream.for_each(halves).flatten(), Stream[Batch])
    assert_type(stream.mix_replay(slots=4, share=0.5), Stream[Batch])
    assert_type(table.samples(batch_items=4), Stream[Batch])
    first, second = stream.duplicate(2)
    assert_type(first, Stream[Batch])
    queue: Queue[Batch] = Queue(name="train", bound_items=2)
    assert_type(queue.dequeue(), Stream[Batch])
    assert_type(first.enqueue(queue), Stream[Batch])
    counted = second.for_each(rows_of)
    assert_type(union(first, stream), Stream[Batch])
    assert_type(union(first, counted, emit=counted), Stream[int])
    assert_type(union(first, counted, emit=[first]), Stream[Batch])
    return stream.for_each(learner.update()).for_each(learner.publish()).report(every_s=1.0)


def refused(actors: Actors, learner: LearnerHandle) -> None:
    rollouts = actors.rollouts(steps=8)
    rollouts.gather_sync()  # refused: Invalid self argument
    rollouts.for_each(update())  # refused: incompatible type
    rollouts.for_each(rows_of)  # refused: incompatible type
    rollouts.for_each(GAE).batch(steps=8)  # refused: has no attribute "batch"
    stream = rollouts.for_each(GAE).gather_async()
    stream.for_each(GAE)  # refused: incompatible type
    stream.for_each(Scaled())  # refused: incompatible type
    stream.for_each(rows_of).for_each(update())  # refused: incompatible type
    stream.for_each(rows_of).for_each(learner.update())  # refused: incompatible type
    stream.for_each(learner.publish()).for_each(Scaled())  # refused: incompatible type
    rollouts.for_each(learner.publish())  # refused: incompatible type
    stream.for_each(rows_of).batch(steps=8)  # refused: Invalid self argument
    stream.flatten()  # refused: Invalid self argument
    stream.filter(rows_of).zip_with_source()  # refused: incompatible type
    stream.window(items=2).for_each(update())  # refused: incompatible type
