"""Actors that learn together over real Redis and real sockets: equal weights, a death, a newcomer."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from rollstream.algorithms import make_agent
from rollstream.clock import FakeClock, SystemClock
from rollstream.errors import ConfigError, DeadlineExceeded, PeerLost
from rollstream.flow.steps import train_with_peers
from rollstream.flow.toy import ToyActor
from rollstream.graph.peers import PeerGroup, open_meeting
from rollstream.spaces import Batch, Leaf
from rollstream.store import Store, keys
from rollstream.store.peers import SETTLE_S, Peers

OBSERVATION = (Leaf(name="observation", kind="box", dtype="<f4", shape=(3,)),)
ACTIONS = (Leaf(name="action", kind="discrete", dtype="<i8", shape=(), counts=(2,), starts=(0,)),)


def nowhere(count: int) -> str:
    return f"127.0.0.1:{count}"


class Member:
    """One actor with rows of its own, in a thread."""

    def __init__(
        self, store: Store, number: int, *, peers: int, experiment: str, weights: Mapping[str, Any] | None = None
    ) -> None:
        self.agent = make_agent("ddppo", {"hidden": [4]}, observation=OBSERVATION, actions=ACTIONS)
        self.number = number
        clock = SystemClock()
        start = weights or self.agent.learning(seed=1).tensors(env_steps=0)
        name = f"actor-{number}"
        self.peers = Peers(store, experiment=experiment, member=name, host="127.0.0.1", clock=clock)
        self.side = ToyActor(actor=name, agent=self.agent, weights=start, peers=self.peers)
        self.step = train_with_peers(epochs=2, minibatches=2, peers=peers).bind(self.side)
        self.messages: list[Batch] = []
        self.error: Exception | None = None

    def batch(self, rows: int = 12) -> Batch:
        generator = np.random.default_rng(self.number)
        columns: dict[str, Any] = {
            "observation": generator.standard_normal((rows, 3)).astype(np.float32),
            "action": generator.integers(0, 2, rows),
            "log_prob": np.full(rows, -0.7, np.float32),
            "advantage": generator.standard_normal(rows).astype(np.float32),
            "return": generator.standard_normal(rows).astype(np.float32),
        }
        return Batch(columns=columns, env_steps=rows, version=1, newest_version=1)

    def train(self, rounds: int) -> None:
        try:
            for _ in range(rounds):
                self.messages.append(self.step(self.batch()))
        except Exception as error:
            self.error = error

    def weights(self) -> np.ndarray:
        return np.concatenate([tensor.reshape(-1) for tensor in self.side.tensors().values()])


def together(*work: Callable[[], Any]) -> None:
    threads = [threading.Thread(target=each, daemon=True) for each in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()


def require_well(*members: Member) -> None:
    for member in members:
        assert member.error is None, member.error


def test_all_have_the_same_weights_and_one_tells_them(store: Store) -> None:
    members = [Member(store, number, peers=3, experiment="x-same") for number in range(3)]
    together(*(lambda member=member: member.train(3) for member in members))
    require_well(*members)
    assert all(np.array_equal(member.weights(), members[0].weights()) for member in members)
    told = [[message.rows for message in member.messages] for member in members]
    assert sorted(told) == [[0, 0, 0], [0, 0, 0], [1, 1, 1]]
    for member in members:
        metrics = member.messages[-1].metrics
        assert metrics["peers"] == 3.0
        assert metrics["unequal_peers"] == 0.0
        assert metrics["peer_updates"] == 4.0
    together(*(member.step.close for member in members))


def test_the_gradient_is_that_of_all_rows_together(store: Store) -> None:
    members = [Member(store, number, peers=2, experiment="x-mean") for number in range(2)]
    for member in members:
        member.step = train_with_peers(epochs=1, minibatches=1, peers=2).bind(member.side)
    alone = members[0].agent.training()
    alone.start(members[0].side.tensors())
    joined = {name: np.concatenate([member.batch().columns[name] for member in members]) for name in members[0].batch().columns}
    alone.apply(alone.gradient(joined).vector, env_steps=24)
    together(*(lambda member=member: member.train(1) for member in members))
    require_well(*members)
    np.testing.assert_allclose(members[1].weights(), alone.parameters(), atol=1e-6)
    together(*(member.step.close for member in members))


def test_when_a_peer_is_gone_the_others_go_on_from_equal_weights(store: Store) -> None:
    members = [Member(store, number, peers=3, experiment="x-gone") for number in range(3)]
    together(*(lambda member=member: member.train(1) for member in members))
    members[0].step.close()  # its connections close, as those of a process that was killed
    together(*(lambda member=member: member.train(2) for member in members[1:]))
    require_well(*members)
    assert np.array_equal(members[1].weights(), members[2].weights())
    assert members[1].messages[-1].metrics["peers"] == 2.0
    assert members[1].messages[-1].metrics["peer_groups"] == 2.0
    assert sum(member.messages[-1].rows for member in members[1:]) == 1
    together(*(member.step.close for member in members[1:]))


def test_a_newcomer_takes_the_weights_of_those_that_have_learned(store: Store) -> None:
    first = Member(store, 5, peers=2, experiment="x-new")
    first.train(3)  # alone: nobody else comes
    require_well(first)
    learned = first.step._training.updates
    other = first.agent.learning(seed=9).tensors(env_steps=0)  # it begins with other weights
    newcomer = Member(store, 1, peers=2, experiment="x-new", weights=other)
    stop = threading.Event()

    def until_joined() -> None:
        while not stop.is_set() and first.error is None:
            first.train(1)
            if first.messages[-1].metrics["peers"] == 2.0:
                stop.set()

    together(until_joined, lambda: newcomer.train(1))
    require_well(first, newcomer)
    assert np.array_equal(first.weights(), newcomer.weights())
    assert newcomer.step._training.updates >= learned + 4
    assert (first.messages[-1].rows, newcomer.messages[-1].rows) == (1, 0)  # who has learned most is rank 0
    together(first.step.close, newcomer.step.close)


def test_weights_that_differ_are_made_equal(store: Store) -> None:
    members = [Member(store, number, peers=2, experiment="x-differ") for number in range(2)]
    together(*(lambda member=member: member.train(1) for member in members))
    training = members[1].step._training
    training.unpack(training.pack() + 0.25 * (np.arange(len(training.pack())) == 0))
    together(*(lambda member=member: member.train(1) for member in members))
    require_well(*members)
    assert members[0].messages[-1].metrics["unequal_peers"] == 1.0
    assert np.array_equal(members[0].weights(), members[1].weights())
    together(*(member.step.close for member in members))


def test_a_peer_that_does_not_come_is_lost_in_time() -> None:
    opened = open_meeting("127.0.0.1", count=2, deadline_s=0.5)
    with pytest.raises(PeerLost, match=r"rank 0 of 2 lost a peer .*; the rest form a new group"):
        PeerGroup(
            rank=0, count=2, address=f"127.0.0.1:{opened.port}", host="127.0.0.1", join_s=0.5, deadline_s=0.5, opened=opened
        ).add_up(np.zeros(2))


def test_several_actors_in_one_process_are_refused() -> None:
    step = train_with_peers(epochs=1, minibatches=1, peers=2)
    with pytest.raises(ConfigError, match="train_with_peers has 2 actors in one process, where each would wait for the others"):
        step.bind(ToyActor())


def test_newcomers_wait_for_a_group_that_runs_and_do_not_begin_one_of_their_own(store: Store) -> None:
    clock = SystemClock()
    running, newcomer = (
        Peers(store, experiment="x-slow", member=name, host="127.0.0.1", clock=clock) for name in ("actor-0", "actor-1")
    )
    assert running.meet(standing=0, expected=1, open_at=nowhere).members == ("actor-0",)
    assert not running.someone_waits()
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(newcomer.meet(standing=0, expected=2, open_at=nowhere)), daemon=True)
    thread.start()
    clock.sleep(2.0 * SETTLE_S)  # a round may be longer than what it takes to settle
    assert not found
    assert running.someone_waits()
    met = running.meet(standing=4, expected=2, open_at=nowhere)
    thread.join(10)
    assert (met.rank, met.members, met.generation) == (0, ("actor-0", "actor-1"), 2)
    assert found[0].rank == 1
    assert found[0].address == met.address == "127.0.0.1:2"


def test_who_finds_nobody_says_so(store: Store) -> None:
    clock = FakeClock()
    peers = Peers(store, experiment="x-none", member="actor-9", host="127.0.0.1", clock=clock)
    other = Peers(store, experiment="x-none", member="actor-0", host="127.0.0.1", clock=SystemClock())
    other.meet(standing=0, expected=1, open_at=nowhere)
    other.someone_waits()  # its group runs, but never takes anybody in
    store.run("let it run on", lambda client: client.persist(keys.experiment_peers_running("x-none")))
    with pytest.raises(DeadlineExceeded, match=r"actor-9 found no peers to form a group with in 60 s \(present: actor-9\)"):
        peers.meet(standing=0, expected=1, open_at=nowhere)
