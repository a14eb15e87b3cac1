"""Law 3: eager validation. Names, types of edges, sizes, a barrier without producers: refused when the flow is built, with the line.

RLlib Flow: operators are closures; a wrong plan is found when its first item arrives, minutes after the start, if ever.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rollstream.errors import ConfigError
from rollstream.flow import Actors, Description, Queue, Step, Stream, TableHandle, advantages, concatenate, union, update
from rollstream.spaces import Batch, Rollout

GAE = advantages(discount=0.9, gae_lambda=0.9)
REPLAY = TableHandle(name="replay")
QUEUE: Queue[Any] = Queue(name="train", bound_items=2)


def never_bound(side: object) -> Any:
    raise AssertionError("a flow is checked before anything of it is bound or run")


WORKING = Step(name="working", bind=never_bound, takes="batch", gives="batch")


def as_batch(rollout: Rollout) -> Batch:
    raise AssertionError("a flow is checked before anything of it runs")


def stream() -> Stream[Batch]:
    return Actors().rollouts(steps=2).for_each(as_batch).gather_async().for_each(WORKING)


def twice() -> Any:
    once = stream()
    return Description(union(once.take(1), once.take(2)))


WRONG: dict[str, Callable[[], Any]] = {
    "two nodes of one name": lambda: Description(stream().take(1, name="same").take(1, name="same")),
    "a step that takes something else": lambda: stream().for_each(concatenate()),
    "rollouts over an edge": lambda: Actors().rollouts(steps=1).gather_async(),  # type: ignore[misc]
    "a learner's step in the actors": lambda: Actors().rollouts(steps=1).for_each(update()),  # type: ignore[arg-type]
    "an actor's step in the learner": lambda: stream().for_each(GAE),  # type: ignore[arg-type]
    "a lambda in the actors": lambda: Actors().rollouts(steps=1).for_each(lambda rollout: rollout),
    "a size below one": lambda: stream().prefetch(0),
    "a barrier without producers": lambda: Actors(count=0).rollouts(steps=1).for_each(GAE).gather_sync(),
    "a stream that two pull": twice,
    "a table that nobody declared": lambda: Description(REPLAY.samples(batch_items=2), tables=["other"]),
    "a queue that nobody fills": lambda: Description(QUEUE.dequeue()),
    "a queue that nobody drains": lambda: Description(stream().enqueue(QUEUE)),
    "items of no single source": lambda: stream().zip_with_source(),
    "weights for branches that go at their own pace": lambda: union(stream(), weights=[1.0]),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_flow_is_refused_before_anything_runs_and_the_message_names_the_line(wrong: str) -> None:
    with pytest.raises(ConfigError) as refused:
        WRONG[wrong]()
    assert f"{Path(__file__).name}:" in str(refused.value) or wrong == "a table that nobody declared"


def test_a_right_flow_binds_nothing_until_it_runs() -> None:
    assert [node.name for node in Description(stream().take(3)).nodes][-1] == "take"
