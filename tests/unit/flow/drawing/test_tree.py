"""A flow as a tree and as a Mermaid graph: every operator with its process, settings and line, edges with their bounds."""

from __future__ import annotations

from rollstream.flow import Actors, Description, FlowView, LearnerHandle, TableHandle, advantages, store_into, union, view_of
from rollstream.flow.drawing import mermaid, tree, tree_lines

REPLAY = TableHandle(name="replay")


def barrier() -> FlowView:
    learner = LearnerHandle()
    shards = Actors().rollouts(steps=4).for_each(advantages(discount=0.9, gae_lambda=0.5))
    return view_of(Description(shards.gather_sync().for_each(learner.update()).report(every_s=1)))


def replayed() -> FlowView:
    learner = LearnerHandle()
    store = Actors().rollouts(steps=4).for_each(store_into(REPLAY, 1)).gather_async(in_flight=3)
    learn = REPLAY.samples(batch_items=2, prefetch=5).for_each(learner.update())
    return view_of(Description(union(store, learn).report(every_s=1)))


def names(view: FlowView) -> list[str]:
    return [line.branches + (line.node.name if line.node else line.text) for line in tree_lines(view)]


def test_a_chain_stands_in_the_order_in_which_items_go() -> None:
    assert names(barrier()) == ["rollouts", "advantages", "║ barrier, in flight 1", "gather_sync", "update", "report"]


def test_branches_end_in_the_union() -> None:
    assert names(replayed()) == [
        "┌ rollouts",
        "│ store_into",
        "│ ║ as they come, in flight 3",
        "│ gather_async",
        "├ samples_replay",
        "│ prefetch",
        "│ update",
        "└▶union",
        "  report",
    ]


def test_copies_of_one_stream_are_drawn_once() -> None:
    first, second = REPLAY.samples(batch_items=2).duplicate(2)
    assert names(view_of(Description(union(first, second).report(every_s=1)))) == [
        "┌ samples_replay",
        "│ duplicate",
        "│ duplicate.1",
        "├ items of duplicate, see above",
        "│ duplicate.2",
        "└▶union",
        "  report",
    ]


def test_each_line_says_where_it_runs_what_it_was_given_and_who_made_it() -> None:
    lines = tree(barrier()).splitlines()
    assert lines[1].split("  ")[0] == "advantages"
    assert "in every actor" in lines[1]
    assert "discount=0.9 gae_lambda=0.5" in lines[1]
    assert "drawing/test_tree.py:" in lines[1]
    assert lines[2].endswith("a round is one message of every live actor, at most 1 of an actor")
    assert "in the learner" in lines[3]


def test_mermaid_has_a_box_for_each_side_labels_on_edges_and_tables_between() -> None:
    drawn = mermaid(replayed())
    assert 'subgraph actor["in every actor"]' in drawn
    assert 'subgraph learner["in the learner"]' in drawn
    assert '  n1 == "as they come, in flight 3" ==> n2\n' in drawn
    assert '-- "at most 5" -->' in drawn
    assert '  table_replay[("table replay")]\n' in drawn
    assert "  n1 -.-> table_replay\n" in drawn
    assert "  table_replay -.-> n3\n" in drawn
    assert '== "barrier, in flight 1" ==>' in mermaid(barrier())
