"""Law 8: plain pull. A stream is a chain of synchronous generators; `prefetch` and `as_ready` own the only threads; stopping joins them.

RLlib: learner threads, loader threads and replay actors start when a plan is built, and outlive it.
"""

from __future__ import annotations

import threading
from typing import Any

from rollstream.flow import Actors, Runner, Stream, union, update
from rollstream.flow.toy import ToyEdge, ToyLearner
from rollstream.spaces import Batch


def as_batch(rollout: Any) -> Batch:
    raise AssertionError("runs in the actors only")


def filled_edge(messages: int) -> ToyEdge:
    edge = ToyEdge(in_flight=messages)
    edge.join("actor-0")
    for number in range(messages):
        edge.send(Batch(columns={}, env_steps=1, version=1, newest_version=1, actor="actor-0", sequence=number + 1))
    return edge


def learner_at(edge: ToyEdge) -> ToyLearner:
    return ToyLearner(edges=lambda name, in_flight: edge)


def messages() -> Stream[Batch]:
    return Actors().rollouts(steps=1).for_each(as_batch).gather_async(in_flight=99)


def threads() -> list[str]:
    return sorted(thread.name for thread in threading.enumerate() if thread.name.startswith("flow-"))


def test_building_a_flow_and_its_runner_starts_and_pulls_nothing() -> None:
    edge = filled_edge(9)
    runner = Runner(messages().prefetch(4).for_each(update()), learner_at(edge))
    assert threads() == []
    assert len(edge._messages) == 9
    runner.close()


def test_one_item_pulls_exactly_what_it_needs_in_the_pullers_own_thread() -> None:
    edge = filled_edge(9)
    seen: list[str] = []

    def note(batch: Any) -> Any:
        seen.append(threading.current_thread().name)
        return batch

    with Runner(messages().for_each(note).window(items=2).report(every_s=0), learner_at(edge)) as runner:
        next(runner)
        assert len(edge._messages) == 9 - 2
        assert threads() == []
    assert seen == [threading.current_thread().name] * 2


def test_only_prefetch_and_branches_that_go_at_their_own_pace_have_threads_and_closing_joins_them() -> None:
    def two(mode: Any) -> Stream[Any]:
        first, second = messages().duplicate(2)
        return union(first.prefetch(2, name="ahead"), second.for_each(update(), name="beside"), mode=mode)

    edge = filled_edge(40)
    with Runner(two("round_robin"), learner_at(edge)) as runner:
        next(runner)
        assert threads() == ["flow-ahead"]
    assert threads() == []
    edge = filled_edge(40)
    with Runner(two("as_ready"), learner_at(edge)) as runner:
        next(runner)
        assert set(threads()) <= {"flow-ahead", "flow-beside"}
    assert threads() == []


def test_round_robin_gives_the_same_order_every_time() -> None:
    def order() -> list[str]:
        first, second, third = messages().duplicate(3)
        flow = union(
            first.for_each(lambda batch: f"a{batch.sequence}"),
            second.for_each(lambda batch: f"b{batch.sequence}"),
            third.prefetch(3).for_each(lambda batch: f"c{batch.sequence}"),
            mode="round_robin",
            weights=[2, 1, 0.5],
        )
        with Runner(flow, learner_at(filled_edge(40))) as runner:
            return [next(runner) for _ in range(21)]

    first_time = order()
    assert first_time[:7] == ["a1", "a2", "b1", "a3", "a4", "b2", "c1"]
    assert all(order() == first_time for _ in range(5))


def test_a_step_that_is_stuck_is_named_when_its_thread_is_joined() -> None:
    entered, leave = threading.Event(), threading.Event()

    def stuck(batch: Any) -> Any:
        entered.set()
        leave.wait(20)
        return batch

    first, second = messages().duplicate(2)
    flow = union(first, second.for_each(stuck), emit=first)
    runner = Runner(flow, learner_at(filled_edge(9)))
    next(runner)
    entered.wait(10)
    closing = threading.Thread(target=runner.close)
    closing.start()
    closing.join(0.2)
    assert closing.is_alive(), "closing waits for the step that is under way"
    leave.set()
    closing.join(20)
    assert threads() == []
