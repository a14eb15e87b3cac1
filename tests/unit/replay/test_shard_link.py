"""The way to a shard: found, followed, given up at the deadline, with what the shard said."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from rollstream.clock import SystemClock
from rollstream.errors import ConfigError, DeadlineExceeded, SchemaMismatch, TableError
from rollstream.replay.shard_link import ShardLink
from rollstream.store import Address, Store


def reply(status: int, content: bytes) -> bytes:
    return b"HTTP/1.1 %d x\r\ncontent-length: %d\r\n\r\n%b" % (status, len(content), content)


def problem(status: int, kind: str, detail: str) -> bytes:
    return reply(status, json.dumps({"kind": kind, "detail": detail}).encode())


class Shard:
    """A server that gives each connection its answers, one a request, and says nothing when it has no more."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.answers: list[bytes] = []
        self.connections: list[socket.socket] = []
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                self.connections.append(connection)
                while self.answers and connection.recv(65536):
                    connection.sendall(self.answers.pop(0))

    def stop(self) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for connection in self.connections:
            connection.close()
        self.thread.join(timeout=5)


@pytest.fixture
def shard() -> Iterator[Shard]:
    made = Shard()
    yield made
    made.stop()


@pytest.fixture
def link() -> Callable[..., ShardLink]:
    clock = SystemClock()
    store = Store(Address(transport="unix", path="nowhere.sock"), clock=clock)
    return lambda locate: ShardLink(store, shard=4, clock=clock, locate=locate, slack_s=0.1)


def test_a_shard_that_starts_is_asked_again(shard: Shard, link: Callable[..., ShardLink]) -> None:
    shard.answers += [problem(503, "starting", "recovering tables"), reply(200, b'{"items": 3}')]
    found = [None, shard.url]
    assert link(lambda: found.pop(0) if len(found) > 1 else found[0]).request_json("GET", "/x", deadline_s=5.0) == {"items": 3}


def test_what_a_shard_refuses_is_raised_as_what_it_is(shard: Shard, link: Callable[..., ShardLink]) -> None:
    for kind, error in (
        ("config", ConfigError),
        ("schema", SchemaMismatch),
        ("table", TableError),
        ("deadline", DeadlineExceeded),
    ):
        shard.answers += [problem(409, kind, f"it is a matter of {kind}")]
        asked = link(lambda: shard.url)
        with pytest.raises(error, match=f"it is a matter of {kind}"):
            asked.request("GET", "/x", deadline_s=5.0)
        asked.close()
    shard.answers += [reply(500, b"Internal Server Error")]
    with pytest.raises(TableError, match="status 500"):
        link(lambda: shard.url).request("GET", "/x", deadline_s=5.0)


def test_a_shard_that_hangs_is_given_up_at_the_deadline_and_not_asked_twice(shard: Shard, link: Callable[..., ShardLink]) -> None:
    hanging = link(lambda: shard.url)
    hanging.send("POST", "/samples")
    with pytest.raises(DeadlineExceeded, match="replay shard 4 did not serve POST /samples within .* timed out"):
        hanging.receive(deadline_s=0.05)
    with pytest.raises(DeadlineExceeded, match="replay shard 4 did not serve GET /x within .* timed out"):
        link(lambda: shard.url).request("GET", "/x", deadline_s=0.05)
    assert len(shard.connections) == 2


def test_a_reply_that_was_cut_off_is_asked_for_again(shard: Shard, link: Callable[..., ShardLink]) -> None:
    shard.answers += [reply(200, b"whole")[:-1]]
    asked = link(lambda: shard.url)
    asked.send("POST", "/samples")

    def lose_the_connection() -> None:
        shard.answers += [reply(200, b"whole")]
        shard.connections[0].shutdown(socket.SHUT_RDWR)

    later = threading.Timer(0.2, lose_the_connection)
    later.start()
    assert asked.receive(deadline_s=5.0) == b"whole"
    later.join()


def test_a_link_that_was_interrupted_before_it_sent_says_that_it_must_be_asked_again(link: Callable[..., ShardLink]) -> None:
    with pytest.raises(DeadlineExceeded, match="replay shard 4 was asked nothing, since the request was interrupted; ask again"):
        link(lambda: None).receive(deadline_s=1.0)
