"""What every operator and every step must do: empty, one item, slow reader, errors, stop, description, state, counters."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from agents_of_cases import JointActor, lone_actor

from rollstream.checkpoint.tree import join, split
from rollstream.errors import FlowError
from rollstream.flow import (
    Actors,
    Description,
    Queue,
    Runner,
    Step,
    Stream,
    TableHandle,
    advantages,
    concatenate,
    filter_lag,
    publish,
    return_priorities,
    standardize,
    steps,
    store_into,
    sync_target,
    union,
    update,
)
from rollstream.flow.operators import OPERATORS
from rollstream.flow.steps import (
    adapt,
    apply_gradients,
    average_gradients,
    compute_gradients,
    evaluate,
    perturbations,
    select_policies,
    train_with_peers,
    trajectories,
)
from rollstream.flow.toy import ToyActor, ToyTable
from rollstream.spaces import Batch, Rollout

Build = Callable[[Stream[Any]], Stream[Any]]
REPLAY = TableHandle(name="replay")
GAE = advantages(discount=0.9, gae_lambda=0.9)


@dataclass(frozen=True)
class Case:
    """A flow over the messages of an edge.

    Attributes:
        build: the flow behind the given stream, or one of its own.
        acts: its steps run in an actor, which makes the messages.
        outputs: how many items come out for that many messages.
        ordered: items come out in the order of the messages, each once.
        made: what actor that is.
    """

    build: Build
    acts: bool = False
    outputs: Callable[[int], int] = lambda messages: messages
    ordered: bool = True
    made: Callable[..., ToyActor] = lone_actor

    def actor(self, tables: Mapping[str, ToyTable]) -> ToyActor | None:
        return self.made(tables=tables) if self.acts else None


def as_batch(rollout: Any) -> Batch:
    raise AssertionError("the edges of these cases are given, so nothing runs in the actors")


def made_of(nothing: None) -> Batch:
    return Batch(columns={"x": np.ones(4, np.float32)}, env_steps=4, version=1, newest_version=1)


def keep(item: Any) -> bool:
    return True


def same(item: Any) -> Any:
    return item


def in_a_list(item: Any) -> Any:
    return [item]


def with_gradient(batch: Batch) -> Batch:
    columns = {"gradient": np.ones((2, 3), np.float32), "gradient_rows": np.array([1, 3], np.float32)}
    return replace(batch, columns=columns)


def is_odd(batch: Any) -> bool:
    return bool(batch.sequence % 2)


def is_even(batch: Any) -> bool:
    return not batch.sequence % 2


def both_copies(mode: Any) -> Build:
    def build(stream: Stream[Any]) -> Stream[Any]:
        first, second = stream.duplicate(2)
        return union(first, second, mode=mode, emit=first)

    return build


def two_emitted(stream: Stream[Any]) -> Stream[Any]:
    first, second = stream.duplicate(2)
    return union(first.filter(is_odd), second.filter(is_even))


def through_a_queue(mode: Any) -> Build:
    def build(stream: Stream[Any]) -> Stream[Any]:
        queue: Queue[Any] = Queue(name="between", bound_items=2)
        drained = queue.dequeue()
        return union(stream.enqueue(queue), drained, mode=mode, emit=drained)

    return build


def acted(step: Any, *, then: Any = same) -> Build:
    def build(stream: Stream[Any]) -> Stream[Any]:
        return Actors().rollouts(steps=3).for_each(step).for_each(then).gather_async(in_flight=8, name="gather")

    return build


def computed(stream: Stream[Any]) -> Stream[Any]:
    gae = advantages(discount=0.9, gae_lambda=0.9)
    return Actors().rollouts(steps=3).for_each(gae).for_each(compute_gradients()).gather_async(in_flight=8, name="gather")


def replayed(stream: Stream[Any]) -> Stream[Any]:
    """One sample behind every rollout that is stored."""
    stored = Actors().rollouts(steps=3).for_each(store_into(REPLAY, "1-step")).gather_async(in_flight=8, name="gather")
    learned = REPLAY.samples(batch_items=2).for_each(update()).for_each(return_priorities(REPLAY))
    return union(stored, learned, mode="round_robin", emit=stored)


def kept_rollout(rollout: Rollout) -> bool:
    return True


def filtered_in_the_actor(stream: Stream[Any]) -> Stream[Any]:
    shards = Actors().rollouts(steps=3).filter(kept_rollout).for_each(advantages(discount=0.9, gae_lambda=0.9))
    return shards.gather_async(in_flight=8, name="gather")


def generated(step: Any) -> Build:
    return lambda stream: Actors().generate(step).gather_async(in_flight=8, name="gather")


def made_of_step() -> Any:
    return Step(name="made", bind=_bound_to_nothing, gives="batch")


def _bound_to_nothing(side: object) -> Any:
    return made_of


CASES: dict[str, Case] = {
    "gather_async": Case(lambda stream: stream),
    "gather_sync": Case(lambda stream: Actors().rollouts(steps=1).for_each(as_batch).gather_sync(name="gather")),
    "gather_sync with a deadline": Case(
        lambda stream: Actors().rollouts(steps=1).for_each(as_batch).gather_sync(deadline_s=5.0, name="gather")
    ),
    "generate": Case(generated(made_of_step()), acts=True),
    "zip_with_source": Case(lambda stream: stream.zip_with_source()),
    "for_each": Case(lambda stream: stream.for_each(same)),
    "filter": Case(lambda stream: stream.filter(keep)),
    "filter in the actor": Case(filtered_in_the_actor, acts=True),
    "batch": Case(lambda stream: stream.batch(steps=1)),
    "flatten": Case(lambda stream: stream.for_each(in_a_list).flatten()),
    "take": Case(lambda stream: stream.take(100)),
    "window": Case(lambda stream: stream.window(items=1)),
    "prefetch": Case(lambda stream: stream.prefetch(2)),
    "throttle": Case(lambda stream: stream.throttle(every_steps=1)),
    "mix_replay": Case(
        lambda stream: stream.mix_replay(slots=3, share=0.5),
        outputs=lambda messages: messages + max(0, messages - 1) // 2,
        ordered=False,
    ),
    "queue in threads": Case(through_a_queue("as_ready")),
    "queue in turn": Case(through_a_queue("round_robin")),
    "duplicate in turn": Case(both_copies("round_robin")),
    "duplicate in threads": Case(both_copies("as_ready")),
    "union of one": Case(union),
    "union of two": Case(two_emitted, ordered=False),
    "samples": Case(replayed, acts=True),
    "report": Case(lambda stream: stream.report(every_s=0)),
    "update": Case(lambda stream: stream.for_each(update())),
    "publish": Case(lambda stream: stream.for_each(publish())),
    "sync_target": Case(lambda stream: stream.for_each(sync_target(every_updates=2))),
    "evaluate": Case(lambda stream: stream.for_each(evaluate(every_updates=2, episodes=3))),
    "standardize": Case(lambda stream: stream.for_each(standardize("x"))),
    "filter_lag": Case(lambda stream: stream.filter(filter_lag(max_lag=3))),
    "concatenate": Case(lambda stream: stream.window(items=1).for_each(concatenate())),
    "advantages": Case(acted(GAE), acts=True),
    "trajectories": Case(acted(trajectories(discount=0.9)), acts=True),
    "compute_gradients": Case(computed, acts=True),
    "select_policies": Case(acted(select_policies("seer"), then=GAE), acts=True, made=JointActor),
    "perturbations": Case(generated(perturbations(pairs=1, deviation=0.5, steps=2, episode_steps=4)), acts=True),
    "adapt": Case(generated(adapt(tasks=2, rollout_steps=3, inner_steps=1, discount=0.9, gae_lambda=0.9)), acts=True),
    "train_with_peers": Case(acted(GAE, then=train_with_peers(epochs=2, minibatches=2, peers=1)), acts=True),
    "average_gradients": Case(lambda stream: stream.for_each(with_gradient).for_each(average_gradients())),
    "apply_gradients": Case(lambda stream: stream.for_each(with_gradient).for_each(apply_gradients())),
}


every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
both_modes = pytest.mark.parametrize("inline", [False, True], ids=["threads", "inline"])
MOST_HELD = 20
"""Items that any of these operators may hold: a duplicate lets one copy be 16 ahead, and a queue follows."""


def run(
    rig: Any, case: Case, items: Any, *, inline: bool = False, stays_open: bool = False, build: Build | None = None
) -> Runner:
    rig.learner.tables = rig.learner.tables or {"replay": ToyTable()}  # tables outlive a restart
    runner: Runner = rig.run(
        build or case.build, items, inline=inline, stays_open=stays_open, actor=case.actor(rig.learner.tables)
    )
    return runner


def batches_in(item: Any) -> list[Batch]:
    if isinstance(item, Batch):
        return [item]
    return [batch for member in item for batch in batches_in(member)] if isinstance(item, (tuple, list)) else []


def test_no_operator_and_no_step_is_missing_here() -> None:
    covered: set[str] = set()
    for case in CASES.values():
        for node in nodes_of(case):
            covered |= {node.kind, node.step.name if node.step is not None else node.kind}
    assert OPERATORS.keys() <= covered
    assert {"rollouts", "generate"} <= covered
    assert set(steps.__all__) <= covered


def nodes_of(case: Case) -> Any:
    return Description(case.build(Actors().rollouts(steps=1).for_each(as_batch).gather_async())).nodes


@both_modes
@every_case
def test_nothing_comes_out_of_an_empty_stream(rig: Any, case: Case, inline: bool) -> None:
    assert list(run(rig, case, [], inline=inline)) == []


@both_modes
@every_case
def test_one_item_comes_out_once_and_is_acknowledged(rig: Any, batches: Any, case: Case, inline: bool) -> None:
    runner = run(rig, case, batches(1), inline=inline)
    assert len(list(runner)) == 1
    assert rig.edge.acknowledged == rig.edge.messages
    assert rig.law_holds(runner)
    assert runner.in_flight_env_steps == 0


@both_modes
@every_case
def test_a_slow_reader_holds_the_source_back(rig: Any, batches: Any, case: Case, inline: bool) -> None:
    runner = run(rig, case, batches(50), inline=inline)
    for _ in range(3):
        next(runner)
    rig.learner.stop.wait(0.02)
    assert rig.edge.given <= 3 + MOST_HELD
    assert rig.law_holds(runner)


@both_modes
@every_case
def test_all_items_come_out_in_order(rig: Any, batches: Any, case: Case, inline: bool) -> None:
    runner = run(rig, case, batches(10), inline=inline)
    items = list(runner)
    assert len(items) == case.outputs(10)
    numbers = [batch.sequence for item in items for batch in batches_in(item) if batch.sequence]
    assert set(numbers) in (set(range(1, 11)), set())
    assert not case.ordered or numbers in ([*range(1, 11)], [])
    assert rig.law_holds(runner)
    assert runner.in_flight_env_steps == 0


@both_modes
@every_case
def test_an_error_upstream_names_the_source_and_carries_its_cause(rig: Any, batches: Any, case: Case, inline: bool) -> None:
    broken = ValueError("the wire broke")
    runner = run(rig, case, [*batches(1), broken], inline=inline)
    with pytest.raises(FlowError, match="operator 'gather' in the learner .* failed: ValueError: the wire broke") as caught:
        list(runner)
    assert caught.value.__cause__ is broken
    assert caught.value.operator == "gather"


@both_modes
@every_case
def test_an_error_downstream_names_its_step_and_ends_everything(rig: Any, batches: Any, case: Case, inline: bool) -> None:
    broken = KeyError("no such column")

    def fail(item: Any) -> Any:
        raise broken

    def failing(stream: Stream[Any]) -> Stream[Any]:
        return case.build(stream).for_each(fail, name="the broken one")

    runner = run(rig, case, batches(5), inline=inline, build=failing)
    with pytest.raises(FlowError, match="operator 'the broken one'") as caught:
        next(runner)
    assert caught.value.__cause__ is broken
    assert list(runner) == []


@both_modes
@every_case
def test_stopping_ends_the_stream_and_joins_its_threads(rig: Any, batches: Any, case: Case, inline: bool) -> None:
    runner = run(rig, case, batches(3), inline=inline, stays_open=True)
    next(runner)
    rig.learner.stop.set()
    assert len(list(runner)) <= case.outputs(3)
    runner.close()


@every_case
def test_closing_in_the_middle_ends_everything(rig: Any, batches: Any, case: Case) -> None:
    runner = run(rig, case, batches(50), stays_open=True)
    next(runner)
    runner.close()
    assert list(runner) == []


@every_case
def test_a_flow_can_be_described_and_drawn(rig: Any, batches: Any, case: Case) -> None:
    runner = run(rig, case, batches(2))
    list(runner)
    view = runner.describe()
    names = [node.name for node in runner.description.nodes]
    assert [node.name for node in view.nodes] == names
    assert json.loads(json.dumps(view.to_json()))["nodes"][-1]["items"] == case.outputs(2)
    drawn = view.draw()
    assert all(name in drawn for name in names)
    assert all(node.file == __file__ or "conftest" in node.file for node in view.nodes)


@both_modes
@every_case
def test_state_can_be_saved_between_two_items_and_restored(rig: Any, batches: Any, case: Case, inline: bool) -> None:
    runner = run(rig, case, batches(4), inline=inline)
    next(runner)
    with runner.quiet():
        value, arrays = split(runner.state())
    runner.close()
    again = run(rig, case, [], inline=inline)
    again.restore(join(json.loads(json.dumps(value)), arrays))
    assert list(again) == []
    assert rig.law_holds(again)
