"""The bottleneck in words, from shares of the time that are set by hand."""

from __future__ import annotations

from dataclasses import replace

from rollstream.flow import Actors, Description, FlowView, LearnerHandle, TableHandle, advantages, store_into, union, view_of
from rollstream.flow.bottleneck import Bottleneck, find_bottleneck

REPLAY = TableHandle(name="replay")


def on_policy() -> FlowView:
    learner = LearnerHandle()
    shards = Actors().rollouts(steps=4).for_each(advantages(discount=0.9, gae_lambda=0.5))
    return view_of(Description(shards.gather_sync().for_each(learner.update()).for_each(learner.publish()).report(every_s=1)))


def off_policy() -> FlowView:
    learner = LearnerHandle()
    store = Actors().rollouts(steps=4).for_each(store_into(REPLAY, 1)).gather_async()
    return view_of(
        Description(union(store, REPLAY.samples(batch_items=2, prefetch=2).for_each(learner.update())).report(every_s=1))
    )


def judged(view: FlowView, *, busy: dict[str, float] | None = None, waited: dict[str, float] | None = None) -> Bottleneck | None:
    """The bottleneck when these nodes have worked and waited for these shares; nodes that are not named have told nothing."""
    nodes = [
        replace(node, busy_share=(busy or {}).get(node.name), waited_share=(waited or {}).get(node.name)) for node in view.nodes
    ]
    return find_bottleneck(nodes, view.edges)


def said(found: Bottleneck | None) -> str:
    assert found is not None
    return found.sentence


def test_a_learner_that_waits_at_its_barrier_waits_for_actors() -> None:
    found = judged(on_policy(), busy={"rollouts": 0.95, "update": 0.25}, waited={"gather_sync": 0.71, "rollouts": 0.04})
    assert found == Bottleneck(
        who="learner",
        for_whom="actors",
        share=0.71,
        sentence="learner waits for actors: 71 % of the time (rollouts works 95 %)",
    )


def test_actors_without_credit_wait_for_the_learner() -> None:
    found = judged(on_policy(), busy={"update": 0.9, "rollouts": 0.35}, waited={"gather_sync": 0.08, "rollouts": 0.6})
    assert said(found) == "actors wait for the learner: 60 % of the time (update works 90 %)"


def test_waits_for_samples_are_waits_for_whoever_fills_the_table() -> None:
    found = judged(off_policy(), busy={"rollouts": 0.8}, waited={"prefetch": 0.4, "samples_replay": 0.9, "gather_async": 1.0})
    assert said(found) == "learner waits for actors to fill table replay: 40 % of the time (rollouts works 80 %)"


def test_a_full_table_waits_for_the_learner() -> None:
    found = judged(off_policy(), busy={"update": 0.7}, waited={"prefetch": 0.05, "store_into": 0.5, "gather_async": 1.0})
    assert said(found) == "actors wait for the learner to empty table replay: 50 % of the time (update works 70 %)"


def test_a_branch_that_only_counts_does_not_hold_the_learner_up() -> None:
    found = judged(off_policy(), busy={"update": 0.97}, waited={"gather_async": 1.0, "prefetch": 0.02})
    assert said(found) == "nobody waits; update in the learner works 97 % of the time"


def test_both_waiting_most_of_the_time_means_that_the_way_between_them_is_slow() -> None:
    found = judged(on_policy(), busy={"update": 0.1, "rollouts": 0.1}, waited={"gather_sync": 0.85, "rollouts": 0.8})
    assert said(found) == (
        "learner and actors wait for each other: 85 % and 80 % of the time; what lies between them, edge gather_sync, "
        "is slow or too short"
    )
    found = judged(off_policy(), waited={"prefetch": 0.8, "samples_replay": 0.9, "rollouts": 0.8})
    assert "what lies between them, table replay" in said(found)


def test_a_table_that_nobody_here_fills_is_named_itself() -> None:
    flow = Description(REPLAY.samples(batch_items=2).for_each(LearnerHandle().update()).report(every_s=1))
    assert said(judged(view_of(flow), waited={"samples_replay": 0.3})) == "learner waits for table replay: 30 % of the time"


def test_the_busiest_actor_node_is_named_when_nobody_waits() -> None:
    found = judged(on_policy(), busy={"rollouts": 0.99, "update": 0.9}, waited={"gather_sync": 0.05})
    assert said(found) == "nobody waits; rollouts in the actors works 99 % of the time"


def test_nothing_is_said_before_anything_was_measured() -> None:
    assert judged(on_policy()) is None
    assert on_policy().bottleneck is None
