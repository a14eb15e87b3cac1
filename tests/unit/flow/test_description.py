"""What is refused when a flow is built, and how the message helps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rollstream.errors import ConfigError
from rollstream.flow import (
    Actors,
    Description,
    LearnerHandle,
    Queue,
    Step,
    Stream,
    TableHandle,
    advantages,
    concatenate,
    filter_lag,
    publish,
    return_priorities,
    standardize,
    store_into,
    sync_target,
    union,
)
from rollstream.spaces import Batch

QUEUE: Queue[Batch] = Queue(name="train", bound_items=2)
REPLAY = TableHandle(name="replay")
GAE = advantages(discount=0.9, gae_lambda=0.9)


def as_batch(rollout: Any) -> Any:
    return rollout


def shards() -> Any:
    return Actors(count=2).rollouts(steps=4).for_each(as_batch)


def stream() -> Stream[Batch]:
    return shards().gather_async()  # type: ignore[no-any-return]


def used_twice() -> Description:
    once = stream()
    return Description(union(once.for_each(as_batch), once.take(3)))


def copy_unused() -> Description:
    first, _ = stream().duplicate(2)
    return Description(first)


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "union of nothing": (union, "union of nothing .* give it at least one stream"),
    "union of shards": (lambda: union(shards()), "union takes streams, got Shards .* put gather_sync"),
    "union mode": (lambda: union(stream(), mode="fast"), "mode of union must be 'as_ready' or 'round_robin', got 'fast'"),  # type: ignore[arg-type]
    "union emit": (lambda: union(stream(), emit=stream()), "emit of union must be among its 1 branches"),
    "union emit of none": (lambda: union(stream(), emit=[]), "emit of union must be among its 1 branches"),
    "union weights mode": (lambda: union(stream(), weights=[1]), "weights of union need mode='round_robin'"),
    "union weights count": (
        lambda: union(stream(), mode="round_robin", weights=[1, 2]),
        "union has 1 branches but 2 weights",
    ),
    "union weights": (
        lambda: union(stream(), mode="round_robin", weights=[0]),
        "weights of union must be numbers > 0, got 0",
    ),
    "union weights that are endless": (
        lambda: union(stream(), mode="round_robin", weights=[float("inf")]),
        "weights of union must be numbers > 0, got inf",
    ),
    "learner operator on shards": (lambda: shards().batch(steps=3), "batch runs in the learner, but as_batch .* gather_sync"),
    "report on shards": (lambda: shards().report(every_s=1), "report runs in the learner, but as_batch"),
    "learner step on shards": (lambda: shards().for_each(publish()), "publish runs in the learner, but as_batch .* is still"),
    "actor step on a stream": (lambda: stream().for_each(GAE), "advantages runs in the actors, but gather_async"),
    "shards returned": (lambda: Description(shards()), "a flow ends in a stream, got Shards"),
    "rollouts over an edge": (
        lambda: Actors().rollouts(steps=1).gather_sync(),
        "gather_sync sends batches, but rollouts .* gives rollouts",
    ),
    "barrier without producers": (
        lambda: Actors(count=0).rollouts(steps=1).for_each(GAE).gather_sync(),
        r"gather_sync has no producers: Actors\(count=0\)",
    ),
    "two advantages": (
        lambda: Actors().rollouts(steps=1).for_each(GAE).for_each(GAE),
        "advantages takes a rollout, but advantages .* gives a batch",
    ),
    "step of windows": (lambda: stream().for_each(concatenate()), "concatenate takes batches, but gather_async .* gives batch"),
    "filter behind storing": (
        lambda: Actors().rollouts(steps=1).for_each(store_into(REPLAY, 1)).filter(as_batch),
        "filter stands behind store_into .* whose rows are in the table already",
    ),
    "not a step": (lambda: stream().for_each(3), "for_each takes a step or a function, got 3"),  # type: ignore[arg-type]
    "rollout steps": (lambda: Actors().rollouts(steps=0), "steps of rollouts must be >= 1, got 0"),
    "in_flight": (lambda: shards().gather_async(in_flight=0), "in_flight of gather_async must be >= 1, got 0"),
    "batch steps": (lambda: stream().batch(steps=0), "steps of batch must be >= 1, got 0"),
    "window items": (lambda: stream().window(items=-1), "items of window must be >= 1, got -1"),
    "take": (lambda: stream().take(-1), "items of take must be >= 0, got -1"),
    "prefetch": (lambda: stream().prefetch(0), "items of prefetch must be >= 1, got 0"),
    "copies": (lambda: stream().duplicate(1), "copies of duplicate must be >= 2, got 1"),
    "throttle both": (lambda: stream().throttle(every_s=1, every_steps=1), "throttle takes either every_s or every_steps"),
    "throttle neither": (lambda: stream().throttle(), "throttle takes either every_s or every_steps"),
    "throttle seconds": (lambda: stream().throttle(every_s=-1), "every_s of throttle must be >= 0, got -1"),
    "throttle steps": (lambda: stream().throttle(every_steps=0), "every_steps of throttle must be >= 1, got 0"),
    "report": (lambda: stream().report(every_s=float("nan")), "every_s of report must be >= 0, got nan"),
    "samples": (lambda: REPLAY.samples(batch_items=0), "batch_items of samples must be >= 1, got 0"),
    "samples prefetch": (lambda: REPLAY.samples(batch_items=1, prefetch=-1), "prefetch of samples must be >= 0, got -1"),
    "empty name": (lambda: stream().take(1, name=" "), "the name of a take must not be empty"),
    "same name twice": (
        lambda: Description(stream().take(1, name="x").take(2, name="x")),
        "the name 'x' is given twice, at .* names must be unique",
    ),
    "used twice": (used_twice, r"gather_async .* is used 2 times, by .* and .* an item goes one way only: use duplicate\(2\)"),
    "unused copy": (copy_unused, "makes 2 copies, but 1 are used"),
    "source of joined items": (
        lambda: shards().gather_sync().zip_with_source(),
        "zip_with_source needs items of one actor each, but it stands behind gather_sync .* joins one message of every actor",
    ),
    "source of later items": (
        lambda: stream().take(1).zip_with_source(),
        "but it stands behind take .* may be joined of several actors', or come from a table",
    ),
    "update of pairs": (
        lambda: stream().zip_with_source().for_each(LearnerHandle().update()),
        "update takes batch, but zip_with_source .* gives pair",
    ),
    "slots": (lambda: stream().mix_replay(slots=0, share=1), "slots of mix_replay must be >= 1, got 0"),
    "share": (lambda: stream().mix_replay(slots=1, share=-1), "share of mix_replay must be >= 0, got -1"),
    "queue of no name": (lambda: Queue(name=" ", bound_items=1), "the name of a queue must not be empty"),
    "queue of no size": (lambda: Queue(name="q", bound_items=0), "bound_items of queue 'q' must be >= 1, got 0"),
    "queue without patience": (
        lambda: Queue(name="q", bound_items=1, deadline_s=-1),
        "deadline_s of queue 'q' must be >= 0, got -1",
    ),
    "no queue": (lambda: stream().enqueue("train"), "enqueue takes a Queue, got 'train' .* make one by Queue"),  # type: ignore[arg-type]
    "queue that nobody fills": (lambda: Description(QUEUE.dequeue()), "takes from queue 'train', which nobody fills"),
    "queue that nobody drains": (
        lambda: Description(stream().enqueue(QUEUE)),
        "fills queue 'train', which nobody drains; use dequeue",
    ),
    "queue that two drain": (
        lambda: Description(union(stream().enqueue(QUEUE), QUEUE.dequeue(), QUEUE.dequeue())),
        "fills queue 'train', which dequeue_train .* and dequeue_train .* drain",
    ),
    "two queues of one name": (
        lambda: Description(union(stream().enqueue(QUEUE), Queue(name="train", bound_items=9).dequeue())),
        "there are two queues 'train', at .* and .*; give both ends the same Queue",
    ),
    "queue in a circle": (
        lambda: Description(QUEUE.dequeue().enqueue(QUEUE)),
        "fills queue 'train' with what dequeue_train .* takes out of it; such a circle never ends",
    ),
    "undeclared table": (
        lambda: Description(REPLAY.samples(batch_items=1), tables=["other"]),
        "samples_replay .* needs the table 'replay', which is not declared; declared: other",
    ),
    "priorities of no samples": (
        lambda: Description(stream().for_each(return_priorities(REPLAY))),
        "returns priorities to 'replay', but its items are not samples of that table",
    ),
    "steps of samples": (
        lambda: Description(REPLAY.samples(batch_items=1).batch(steps=3)),
        "batch .* counts environment steps, which samples of a table do not carry",
    ),
    "unknown node": (lambda: Description(stream()).node("nobody"), "the flow has no node 'nobody'; it has: rollouts"),
    "discount": (lambda: advantages(discount=1.5, gae_lambda=0.9), "discount of advantages must be between 0 and 1, got 1.5"),
    "lambda": (lambda: advantages(discount=0.9, gae_lambda=-1), "gae_lambda of advantages must be between 0 and 1, got -1"),
    "publish": (lambda: LearnerHandle().publish(every_updates=0), "every_updates of publish must be >= 1, got 0"),
    "sync": (lambda: sync_target(every_updates=0), "every_updates of sync_target must be >= 1, got 0"),
    "evaluate": (lambda: LearnerHandle().evaluate(every_updates=0, episodes=1), "every_updates of evaluate must be >= 1, got 0"),
    "evaluations": (lambda: LearnerHandle().evaluate(every_updates=1, episodes=0), "episodes of evaluate must be >= 1, got 0"),
    "lag": (lambda: filter_lag(max_lag=-1), "max_lag must be >= 0 or None, got -1"),
}


@pytest.mark.parametrize(("build", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_a_flow_that_cannot_work_is_refused_when_built(build: Callable[[], Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build()


def test_a_refusal_names_the_line_of_the_flow_page() -> None:
    with pytest.raises(ConfigError, match=r"test_description\.py:\d+"):
        stream().batch(steps=0)


def test_shards_have_no_operators_that_do_not_exist() -> None:
    with pytest.raises(AttributeError, match="Shards has no operator 'shuffle'"):
        shards().shuffle()


def test_equal_names_of_steps_are_numbered_in_the_order_of_the_flow() -> None:
    flow = Description(stream().for_each(standardize("a")).for_each(standardize("b")).take(1))
    assert [node.name for node in flow.nodes] == ["rollouts", "as_batch", "gather_async", "standardize", "standardize_2", "take"]


def test_a_name_of_the_users_is_kept_and_ours_gives_way() -> None:
    flow = Description(stream().take(1).take(2, name="take"))
    assert [node.name for node in flow.nodes][-2:] == ["take_2", "take"]


def test_both_processes_build_equal_descriptions() -> None:
    first, second = Description(stream().take(1)), Description(stream().take(1))
    assert [(node.name, node.kind, dict(node.settings)) for node in first.nodes] == [
        (node.name, node.kind, dict(node.settings)) for node in second.nodes
    ]


def test_edges_and_tables_can_be_asked_for() -> None:
    store = Actors().rollouts(steps=1).for_each(store_into(REPLAY, 1)).gather_async(in_flight=3, name="stored")
    fresh = Actors().rollouts(steps=1, name="fresh").for_each(GAE).gather_sync()
    flow = Description(union(store, fresh, REPLAY.samples(batch_items=2)), tables=["replay"])
    stored, rounds = flow.edges
    assert (stored.name, stored.in_flight, stored.barrier, stored.stored) == ("stored", 3, False, True)
    assert (rounds.name, rounds.in_flight, rounds.barrier, rounds.stored) == ("gather_sync", 1, True, False)
    assert [node.name for node in rounds.chain] == ["fresh", "advantages"]
    assert flow.tables == ("replay",)
    assert flow.node("stored").kind == "gather_async"


def test_a_lambda_and_a_callable_object_have_names() -> None:
    class Doubling:
        def __call__(self, item: Any) -> Any:
            return item

    flow = Description(stream().for_each(lambda item: item).for_each(Doubling()).for_each(Step(name="mine", bind=as_batch)))
    assert [node.name for node in flow.nodes][-3:] == ["lambda", "Doubling", "mine"]
