"""The toy sides behave as the real ones are specified to."""

from __future__ import annotations

import pytest

from rollstream.errors import DeadlineExceeded
from rollstream.flow.toy import ToyActor, ToyEdge, ToyLearner, ToyTable
from rollstream.spaces import Batch, Flag


def message(sequence: int) -> Batch:
    return Batch(columns={}, env_steps=1, version=1, newest_version=1, actor="a", sequence=sequence)


def test_an_episode_of_three_steps_is_four_rows() -> None:
    rollout = ToyActor(environments=1, episode_steps=3).collect(steps=4)
    assert rollout.rows["flags"].tolist() == [Flag.FIRST, 0, 0, Flag.FINAL | Flag.TERMINATED, Flag.FIRST]
    assert rollout.env_steps == 4
    assert rollout.next_observation["observation"].tolist() == [[1.0]]


def test_an_edge_holds_a_sender_without_credit() -> None:
    edge = ToyEdge(in_flight=1)
    edge.join("a")
    assert edge.send(message(1))
    with pytest.raises(DeadlineExceeded, match="a got no credit from the learner"):
        edge.send(message(2), deadline_s=0.01)
    received = edge.next(0.0)
    assert received is not None
    edge.ack(received)
    assert edge.wait_for_credit("a")
    edge.leave("a")
    assert not edge.send(message(2))
    assert edge.acknowledged == [("a", 1)]


def test_a_table_below_its_minimum_cannot_be_sampled() -> None:
    learner = ToyLearner(tables={"replay": ToyTable(min_items=2, items=1)})
    with pytest.raises(DeadlineExceeded, match="table replay has 1 items, 2 are needed"):
        learner.sample("replay", batch_items=1, deadline_s=0.0)
