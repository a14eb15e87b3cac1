"""An edge between one or more writers and a reader, on a real server."""

from __future__ import annotations

import logging
import threading

import numpy as np
import pytest

from rollstream.clock import SystemClock
from rollstream.edges import EdgeMessage, EdgeReader, EdgeWriter, encode_batch
from rollstream.errors import ConfigError, DeadlineExceeded
from rollstream.metrics import Counters, Waits
from rollstream.spaces import Batch
from rollstream.store import Address, EmbeddedServer, Store, keys

EXPERIMENT, NAME = "cartpole-abc123", "rollouts"
STREAM = keys.edge(EXPERIMENT, NAME)


class FastClock(SystemClock):
    """Ten seconds pass in one: long waits without long tests."""

    def monotonic_s(self) -> float:
        return 10.0 * super().monotonic_s()


def batch(value: float = 1.0, *, version: int = 1) -> Batch:
    return Batch(columns={"reward": np.full(8, value, np.float32)}, env_steps=8, version=version, newest_version=version)


def writer(store: Store, *, in_flight: int = 2, actor: str = "actor-1", **options: object) -> EdgeWriter:
    return EdgeWriter(store, experiment=EXPERIMENT, name=NAME, in_flight=in_flight, actor=actor, **options)  # type: ignore[arg-type]


def reader(store: Store, *, consumer: str = "learner-0", **options: object) -> EdgeReader:
    return EdgeReader(store, experiment=EXPERIMENT, name=NAME, consumer=consumer, **options)  # type: ignore[arg-type]


def read(source: EdgeReader, count: int) -> list[EdgeMessage]:
    messages = [source.next(timeout_s=5.0) for _ in range(count)]
    assert None not in messages
    return [message for message in messages if message is not None]


def values(messages: list[EdgeMessage]) -> list[float]:
    return [float(message.batch.columns["reward"][0]) for message in messages]


def test_batches_arrive_in_order_with_who_sent_them(store: Store) -> None:
    sender, source = writer(store, in_flight=8), reader(store)
    for value in (1.0, 2.0, 3.0):
        sender.send(batch(value), deadline_s=5.0, shape=(4, 2))
    messages = read(source, 3)
    assert values(messages) == [1.0, 2.0, 3.0]
    assert [message.sequence for message in messages] == [1, 2, 3]
    assert {message.writer for message in messages} == {sender.writer}
    assert {message.batch.actor for message in messages} == {"actor-1"}
    assert messages[0].shape == (4, 2)


def test_every_incarnation_of_a_writer_has_a_number_of_its_own(store: Store) -> None:
    assert len({writer(store).writer for _ in range(5)}) == 5


def test_a_writer_has_at_most_so_many_messages_in_flight(store: Store) -> None:
    sender, source = writer(store, in_flight=2), reader(store)
    sender.send(batch(), deadline_s=5.0)
    sender.send(batch(), deadline_s=5.0)
    assert not sender.wait_for_room(timeout_s=0.05)
    assert sender.unacknowledged == 2
    source.ack(read(source, 1))
    assert sender.wait_for_room(timeout_s=5.0)
    assert sender.send(batch(), deadline_s=5.0) == 3


def test_a_waiting_writer_goes_on_as_soon_as_the_reader_acknowledges(store: Store) -> None:
    sender, source = writer(store, in_flight=1), reader(store)
    sender.send(batch(), deadline_s=5.0)
    sequences: list[int] = []
    thread = threading.Thread(target=lambda: sequences.append(sender.send(batch(2.0), deadline_s=20.0)))
    thread.start()
    source.ack(read(source, 1))
    thread.join(timeout=20.0)
    assert sequences == [2]
    assert values(read(source, 1)) == [2.0]


def test_a_wait_in_vain_names_both_sides(store: Store) -> None:
    sender = writer(store, in_flight=1)
    sender.send(batch(), deadline_s=5.0)
    expected = (
        "edge rollouts of cartpole-abc123: actor-1 waited .* for the learner to acknowledge one of 1 messages in flight; "
        "the learner is gone, paused, or slower than its actors"
    )
    with pytest.raises(DeadlineExceeded, match=expected):
        sender.send(batch(), deadline_s=0.02)


def test_the_wait_is_told_to_whoever_watches_waits(store: Store) -> None:
    waits = Waits(store.clock)
    sender = writer(store, in_flight=1, waits=waits)
    sender.send(batch(), deadline_s=5.0)
    assert waits.totals() == ()
    sender.wait_for_room(timeout_s=0.02)
    (total,) = waits.totals()
    assert (total.who, total.for_whom) == ("actor-1", "the learner to read edge rollouts")


def test_draining_ends_when_everything_is_acknowledged(store: Store) -> None:
    sender, source = writer(store), reader(store)
    sender.drain(deadline_s=0.0)
    sender.send(batch(), deadline_s=5.0)
    with pytest.raises(DeadlineExceeded, match="acknowledge the last 1 messages"):
        sender.drain(deadline_s=0.02)
    source.ack(read(source, 1))
    sender.drain(deadline_s=5.0)
    assert sender.acknowledged() == 1


def test_an_edge_without_room_for_a_message_is_refused(store: Store) -> None:
    with pytest.raises(ConfigError, match="in_flight of edge rollouts must be >= 1, got 0"):
        writer(store, in_flight=0)


def test_acknowledging_out_of_order_never_grants_more_than_the_bound(store: Store) -> None:
    sender, source = writer(store, in_flight=2), reader(store)
    sender.send(batch(1.0), deadline_s=5.0)
    sender.send(batch(2.0), deadline_s=5.0)
    first, second = read(source, 2)
    source.ack([second])
    assert sender.acknowledged() == 0
    source.ack([first])
    assert sender.acknowledged() == 2


def test_acknowledging_is_safe_to_repeat(store: Store) -> None:
    sender, source = writer(store), reader(store)
    sender.send(batch(), deadline_s=5.0)
    messages = read(source, 1)
    for _ in range(2):
        source.ack(messages)
    source.ack([])
    assert (sender.acknowledged(), source.held, source.depth()) == (1, 0, 0)


def test_what_a_dead_reader_took_and_never_used_goes_to_the_next_one_first(store: Store) -> None:
    sender = writer(store, in_flight=8)
    for value in range(1, 6):
        sender.send(batch(value), deadline_s=5.0)
    dead = reader(store, consumer="learner-0")
    used, *_ = read(dead, 3)
    dead.ack([used])
    heir = reader(store, consumer="learner-1")
    messages = read(heir, 4)
    assert values(messages) == [2.0, 3.0, 4.0, 5.0]
    heir.ack(messages)
    assert heir.next(timeout_s=0.0) is None
    assert sender.acknowledged() == 5
    assert store.client.xpending(STREAM, "learner")["pending"] == 0


def test_a_restarted_reader_takes_what_it_had_itself(store: Store) -> None:
    sender = writer(store)
    sender.send(batch(1.0), deadline_s=5.0)
    read(reader(store), 1)
    assert values(read(reader(store), 1)) == [1.0]


def test_a_message_that_was_sent_twice_is_used_once(store: Store) -> None:
    """A writer whose connection broke after XADD sends again."""
    counters = Counters()
    source = reader(store, counters=counters)
    for _ in range(2):
        message = encode_batch(batch(1.0), spec_hash="", writer=5, sequence=1)
        store.client.xadd(STREAM, {"m": message})
    (first,) = read(source, 1)
    assert source.next(timeout_s=0.0) is None
    assert source.depth() == 2  # the copy lies there until the first one is used, so that its writer does not believe it lost
    source.ack([first])
    assert source.depth() == 0
    store.client.xadd(STREAM, {"m": encode_batch(batch(1.0), spec_hash="", writer=5, sequence=1)})
    assert source.next(timeout_s=0.0) is None
    assert source.depth() == 0
    assert counters.snapshot() == {"edge_messages_read": 1, "edge_messages_repeated": 2}


def test_a_copy_that_a_new_reader_finds_is_not_used_again(store: Store) -> None:
    message = encode_batch(batch(1.0), spec_hash="", writer=5, sequence=1)
    store.client.xadd(STREAM, {"m": message})
    old = reader(store)
    old.ack(read(old, 1))
    store.client.xadd(STREAM, {"m": message})
    assert reader(store, consumer="learner-1").next(timeout_s=0.0) is None


def test_columns_of_another_spec_are_refused_and_their_writer_need_not_wait(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    counters = Counters()
    source = reader(store, spec_hash="a" * 16, counters=counters)
    other, same = writer(store, in_flight=1, spec_hash="b" * 16), writer(store, in_flight=1, spec_hash="a" * 16)
    other.send(batch(1.0), deadline_s=5.0)
    same.send(batch(2.0), deadline_s=5.0)
    with caplog.at_level(logging.WARNING):
        assert values(read(source, 1)) == [2.0]
    assert "actor-1 sends columns with hash bbbbbbbbbbbbbbbb, the learner expects aaaaaaaaaaaaaaaa" in caplog.text
    assert counters.value("edge_messages_refused", reason="columns") == 1
    assert other.acknowledged() == 1


def test_the_reader_knows_who_is_there_and_for_how_long_they_are_silent(store: Store) -> None:
    one, two = writer(store, actor="actor-1"), writer(store, actor="actor-2")
    source = reader(store)
    one.send(batch(), deadline_s=5.0)
    two.send(batch(), deadline_s=5.0)
    messages = read(source, 2)
    assert source.actors() == {one.writer: "actor-1", two.writer: "actor-2"}
    assert source.live() == {one.writer, two.writer}
    assert set(source.silence_s()) == {"actor-1", "actor-2"}
    assert min(source.silence_s().values()) >= 0.0
    source.drop_writer(one.writer)
    assert source.live() == {two.writer}
    source.ack(messages)
    assert store.client.hkeys(keys.edge_credit(EXPERIMENT, NAME)) == [str(two.writer).encode()]


def test_a_message_that_redis_lost_does_not_stop_its_writer_for_ever(store: Store, address: Address) -> None:
    fast = Store(address, clock=FastClock())
    counters = Counters()
    sender = writer(fast, in_flight=1, counters=counters)
    source = reader(store)
    sender.send(batch(1.0), deadline_s=60.0)
    store.client.xtrim(STREAM, maxlen=0, approximate=False)
    sender.send(batch(2.0), deadline_s=60.0)
    assert counters.snapshot() == {"edge_messages_lost": 1, "env_steps_dropped{lost}": 8}
    assert values(read(source, 1)) == [2.0]
    fast.close()


def test_short_waits_in_a_row_find_a_loss_as_one_long_wait_does(store: Store, address: Address) -> None:
    fast = Store(address, clock=FastClock())
    sender = writer(fast, in_flight=1)
    sender.send(batch(1.0), deadline_s=60.0)
    store.client.delete(STREAM)
    tries = 0
    while not sender.wait_for_room(timeout_s=0.5):
        tries += 1
        assert tries < 100
    fast.close()


def test_a_slow_reader_is_not_a_loss(store: Store, address: Address) -> None:
    fast = Store(address, clock=FastClock())
    counters = Counters()
    sender = writer(fast, in_flight=1, counters=counters)
    sender.send(batch(1.0), deadline_s=60.0)
    assert not sender.wait_for_room(timeout_s=8.0)
    assert counters.snapshot() == {}
    fast.close()


def test_a_restart_of_the_server_loses_nothing_and_repeats_nothing(store: Store, server: EmbeddedServer) -> None:
    sender, source = writer(store, in_flight=4), reader(store)
    sender.send(batch(1.0), deadline_s=5.0)
    (first,) = read(source, 1)
    sender.send(batch(2.0), deadline_s=5.0)
    server.restart()
    (second,) = read(source, 1)
    sender.send(batch(3.0), deadline_s=5.0)
    (third,) = read(source, 1)
    assert values([first, second, third]) == [1.0, 2.0, 3.0]
    source.ack([first, second, third])
    assert source.next(timeout_s=0.0) is None
    sender.drain(deadline_s=5.0)
