"""Unions: who runs where, in which order, and that nobody holds the others up."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from rollstream.clock import FakeClock
from rollstream.errors import DeadlineExceeded, FlowError
from rollstream.flow import (
    ActorFragment,
    Actors,
    Description,
    InlineEdges,
    LearnerHandle,
    Runner,
    Stream,
    TableHandle,
    return_priorities,
    store_into,
    union,
)
from rollstream.flow.toy import ToyActor, ToyEdge, ToyLearner, ToyTable

REPLAY = TableHandle(name="replay")


def dqn(*, emit_learn: bool = True, mode: Any = "as_ready", prefetch: int = 0) -> Stream[Any]:
    learner = LearnerHandle()
    store = Actors().rollouts(steps=4).for_each(store_into(REPLAY, "3-step")).gather_async(in_flight=2)
    learn = (
        REPLAY.samples(batch_items=2, prefetch=prefetch)
        .for_each(learner.update())
        .for_each(return_priorities(REPLAY))
        .for_each(learner.sync_target(every_updates=2))
        .for_each(learner.publish(every_updates=3))
    )
    return union(store, learn, mode=mode, emit=learn if emit_learn else None).report(every_s=0)


class Cell:
    """An inline cell with one table."""

    def __init__(self, **table: int) -> None:
        self.table = ToyTable(**table)
        self.clock = FakeClock()
        tables = {"replay": self.table}
        self.learner = ToyLearner(tables=tables, clock=self.clock)
        self.actor = ToyActor(tables=tables, clock=self.clock, version=self.learner.version)

    def inline(self, flow: Stream[Any]) -> Runner:
        description = Description(flow, tables=["replay"])
        edges = InlineEdges([ActorFragment(description, self.actor)])
        self.learner.edges = lambda name, in_flight: edges.source(name, in_flight=in_flight)
        return Runner(description, self.learner, inline=True)


@pytest.mark.parametrize("emit_learn", [True, False])
def test_inline_the_store_branch_goes_on_until_the_table_can_be_sampled(emit_learn: bool) -> None:
    cell = Cell(min_items=50)
    with cell.inline(dqn(emit_learn=emit_learn, prefetch=2)) as runner:
        while not cell.learner.learned:
            report = next(runner)
    assert cell.table.items == 56
    assert report.counters["env_steps_stored"] == 56
    assert report.env_steps == 56


def test_inline_the_store_branch_waits_while_the_table_is_full() -> None:
    cell = Cell(min_items=1, max_items=16)
    with cell.inline(dqn()) as runner:
        for _ in range(40):
            next(runner)
    assert cell.table.items - cell.table.sampled <= 16 + 8


def test_inline_branches_that_wait_for_each_other_end_with_an_error_that_says_so() -> None:
    cell = Cell(min_items=1_000, max_items=16)
    with pytest.raises(DeadlineExceeded, match="none of its branches can go on: gather_async and publish"):
        list(cell.inline(dqn()))


def test_inline_a_lone_sampler_of_an_empty_table_gives_up_with_its_place() -> None:
    cell = Cell(min_items=10)
    with pytest.raises(FlowError, match="operator 'samples_replay' in the learner .* failed: .*table replay has 0 items"):
        list(Runner(REPLAY.samples(batch_items=2), cell.learner, inline=True))


def test_inline_runs_repeat_exactly() -> None:
    def run() -> list[int]:
        cell = Cell(min_items=20)
        with cell.inline(dqn(emit_learn=False)) as runner:
            return [next(runner).env_steps for _ in range(30)]

    assert run() == run()


def test_steps_of_the_learner_come_at_their_intervals_and_priorities_go_to_the_sampled_keys() -> None:
    cell = Cell(min_items=8)
    with cell.inline(dqn()) as runner:
        while len(cell.learner.learned) < 6:
            next(runner)
    assert cell.learner.synced == 3
    assert cell.learner.published == 1 + 2
    assert cell.table.priorities[7] == 2.0


def test_in_threads_a_learn_branch_that_waits_does_not_stop_the_store_branch() -> None:
    table = ToyTable(min_items=100)
    edge = ToyEdge(in_flight=2)
    learner = ToyLearner(tables={"replay": table}, edges=lambda name, in_flight: edge)
    description = Description(dqn(prefetch=2))
    fragment = ActorFragment(description, ToyActor(tables={"replay": table}, version=learner.version))
    edge.join("actor-0")

    def act() -> None:
        while edge.wait_for_credit("actor-0"):
            batch = fragment.run_once("gather_async")
            assert batch is not None
            edge.send(batch)

    thread = threading.Thread(target=act)
    thread.start()
    with Runner(description, learner) as runner:
        report = next(runner)
    edge.leave("actor-0")
    thread.join(10)
    assert table.items >= 100
    assert report.metrics["loss"] == 1.0
    counted = learner.counters
    assert counted.value("env_steps_sampled") == counted.value("env_steps_stored") > 0
    assert counted.value("env_steps_trained") == 0


def test_round_robin_pulls_by_weight_in_a_fixed_order(rig: Any, batches: Any) -> None:
    def build(stream: Stream[Any]) -> Stream[Any]:
        first, second = stream.duplicate(2)
        return union(
            first.for_each(lambda batch: ("first", batch.sequence)),
            second.for_each(lambda batch: ("second", batch.sequence)),
            mode="round_robin",
            weights=[2, 1],
        )

    order = list(rig.run(build, batches(3)))
    assert order == [("first", 1), ("first", 2), ("second", 1), ("first", 3), ("second", 2), ("second", 3)]


def two_kinds(weights: Any) -> Any:
    def build(stream: Stream[Any]) -> Stream[Any]:
        first, second = stream.duplicate(2)
        return union(first.for_each(lambda batch: "a"), second.for_each(lambda batch: "b"), mode="round_robin", weights=weights)

    return build


@pytest.mark.parametrize(
    ("weights", "order"),
    [([1, 0.25], "aaaabaaaab"), ([1.5, 1], "abaababaab"), ([0.5, 0.5], "ababababab"), ([2.5, 1], "aabaaabaab")],
)
def test_fractional_weights_are_a_running_remainder(rig: Any, batches: Any, weights: Any, order: str) -> None:
    runner = rig.run(two_kinds(weights), batches(60))
    assert "".join(next(runner) for _ in range(10)) == order


def test_tenths_come_out_even_over_many_turns_and_over_a_restart(rig: Any, batches: Any) -> None:
    runner = rig.run(two_kinds([0.3, 0.1]), batches(300))
    whole = "".join(next(runner) for _ in range(20))
    assert (whole.count("a"), whole.count("b")) == (15, 5)
    first = rig.run(two_kinds([0.3, 0.1]), batches(300))
    before = "".join(next(first) for _ in range(7))
    again = rig.run(two_kinds([0.3, 0.1]), batches(300))
    again.restore(first.state())
    assert before + "".join(next(again) for _ in range(13)) == whole


def test_round_robin_goes_on_at_the_same_branch_after_a_restart(rig: Any, batches: Any) -> None:
    def build(stream: Stream[Any]) -> Stream[Any]:
        first, second = stream.duplicate(2)
        return union(first.for_each(lambda batch: "first"), second.for_each(lambda batch: "second"), mode="round_robin")

    runner = rig.run(build, batches(9))
    assert [next(runner) for _ in range(3)] == ["first", "second", "first"]
    again = rig.run(build, batches(9))
    again.restore(runner.state())
    assert next(again) == "second"


def test_an_error_in_a_drained_branch_reaches_the_puller_unchanged(rig: Any, batches: Any) -> None:
    broken = ValueError("store failed")

    def fail(batch: Any) -> Any:
        raise broken

    table = ToyTable(min_items=10)
    rig.learner.tables = {"replay": table}
    runner = rig.run(
        lambda stream: union(stream.for_each(fail, name="failing"), learn := REPLAY.samples(batch_items=1), emit=learn),
        batches(1),
        stays_open=True,
    )
    with pytest.raises(FlowError, match="operator 'failing'") as caught:
        next(runner)
    assert caught.value.__cause__ is broken
    assert broken.__traceback__ is not None
    assert broken.__traceback__.tb_frame.f_code.co_name == "fail"


def test_a_single_emitted_branch_runs_in_the_pullers_own_thread(rig: Any, batches: Any) -> None:
    seen: set[str] = set()

    def note(batch: Any) -> Any:
        seen.add(threading.current_thread().name)
        return batch

    def build(stream: Stream[Any]) -> Stream[Any]:
        first, second = stream.duplicate(2)
        noted = first.for_each(note)
        return union(noted, second, emit=noted)

    list(rig.run(build, batches(5)))
    assert seen == {threading.current_thread().name}


def test_quiet_holds_every_thread_between_two_items(rig: Any, batches: Any) -> None:
    inside = threading.Event()

    def note(batch: Any) -> Any:
        inside.set()
        return batch

    def build(stream: Stream[Any]) -> Stream[Any]:
        first, second = stream.duplicate(2)
        return union(first, second.for_each(note), emit=first)

    runner = rig.run(build, batches(50))
    next(runner)
    inside.wait(5)
    with runner.quiet():
        before = runner.describe().to_json()["nodes"]
        rig.learner.stop.wait(0.02)
        after = runner.describe().to_json()["nodes"]
    assert [node["items"] for node in before] == [node["items"] for node in after]


def test_a_copy_that_ended_does_not_hold_the_other_up(rig: Any, batches: Any) -> None:
    def build(stream: Stream[Any]) -> Stream[Any]:
        first, second = stream.duplicate(2)
        return union(first, second.take(1), mode="round_robin", emit=first)

    runner = rig.run(build, batches(40), inline=True)
    assert len(list(runner)) == 40
    assert rig.law_holds(runner)


def test_a_copy_that_nobody_pulls_is_an_error_that_names_both(rig: Any, batches: Any) -> None:
    def build(stream: Stream[Any]) -> Stream[Any]:
        first, second = stream.duplicate(2)
        return union(first.filter(lambda batch: False), second, emit=second)

    with pytest.raises(DeadlineExceeded, match="copy 1 of duplicate .* is 16 items ahead and waits for copy 2"):
        list(rig.run(build, batches(40), inline=True))
