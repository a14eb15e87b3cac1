"""O96: pickles from Redis ran code. Nothing on our wire is a pickle, and whatever else lies there ends in the dead letters."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

from rollstream.edges import SCHEMA, EdgeReader, EdgeWriter, encode_batch
from rollstream.errors import SchemaMismatch
from rollstream.metrics import Counters
from rollstream.spaces import Batch
from rollstream.store import Store
from rollstream.weights import WeightStore

STREAM = "rs:exp:x-1:edge:rollouts"
GOOD = Batch(columns={"reward": np.ones(8)}, env_steps=8, version=1, newest_version=1)


class Exploit:
    """Unpickling it creates a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return (Path.touch, (self.path,))


def test_garbage_on_an_edge_ends_in_the_dead_letters_and_the_edge_goes_on(store: Store, tmp_path: Path) -> None:
    counters = Counters()
    source = EdgeReader(store, experiment="x-1", name="rollouts", consumer="learner-0", counters=counters)
    bad = encode_batch(GOOD, spec_hash="", writer=3, sequence=1)
    store.client.xadd(STREAM, {"m": pickle.dumps(Exploit(tmp_path / "owned"))})
    store.client.xadd(STREAM, {"other": b"field"})
    store.client.xadd(STREAM, {"m": bad[: len(bad) // 2]})
    store.client.xadd(STREAM, {"m": bad[:4] + (SCHEMA + 1).to_bytes(2, "little") + bad[6:]})
    store.client.xadd(STREAM, {"m": encode_batch(GOOD, spec_hash="", writer=3, sequence=2)})
    message = source.next(timeout_s=5.0)
    assert message is not None
    assert message.sequence == 2
    assert source.missing == 0
    assert not (tmp_path / "owned").exists()
    assert counters.snapshot()["edge_messages_refused{garbage}"] == 2
    assert counters.snapshot()["edge_messages_refused{damaged}"] == 1
    assert counters.snapshot()["edge_messages_refused{schema}"] == 1
    letters = [fields for _, fields in store.client.xrange(STREAM + ":dead")]
    assert [letter[b"reason"] for letter in letters] == [b"garbage", b"garbage", b"damaged", b"schema"]
    assert b"schema version 2, this process reads 1 to 1" in letters[3][b"error"]


def test_a_good_message_after_garbage_is_read(store: Store) -> None:
    source = EdgeReader(store, experiment="x-1", name="rollouts", consumer="learner-0")
    store.client.xadd(STREAM, {"m": b"garbage"})
    writer = EdgeWriter(store, experiment="x-1", name="rollouts", in_flight=1, actor="actor-1")
    writer.send(GOOD, deadline_s=5.0)
    message = source.next(timeout_s=5.0)
    assert message is not None
    assert source.depth() == 1


def test_dead_letters_are_bounded(store: Store) -> None:
    source = EdgeReader(store, experiment="x-1", name="rollouts", consumer="learner-0")
    for _ in range(150):
        store.client.xadd(STREAM, {"m": b"garbage" * 10_000})
    assert source.next(timeout_s=0.0) is None
    letters = store.client.xrange(STREAM + ":dead")
    assert len(letters) == 100
    assert max(len(fields[b"begin"]) for _, fields in letters) == 4_096
    assert store.client.xlen(STREAM) == 0


def test_a_pickle_under_the_key_of_weights_is_refused(store: Store, tmp_path: Path) -> None:
    store.client.set("rs:exp:x-1:weights:1", pickle.dumps(Exploit(tmp_path / "owned")))
    store.client.hset("rs:exp:x-1:weights", mapping={"latest": 1, "sha256:1": "0" * 64})
    with pytest.raises(SchemaMismatch, match="not weights in safetensors format"):
        WeightStore(store, experiment="x-1").fetch()
    assert not (tmp_path / "owned").exists()
