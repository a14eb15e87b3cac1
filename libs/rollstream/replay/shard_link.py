"""A client's way to the replay shard that serves a table: finds it by its member record, follows it when it comes back elsewhere.

record in Redis ─▶ url ─▶ request ─┬─▶ answer
      ▲                            ├─▶ no connection, or 503 (starting, standing by, stopping): look again until the deadline
      └────────────────────────────┘
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any, Protocol

from rollstream.clock import Clock, Deadline
from rollstream.errors import ConfigError, DeadlineExceeded, RollstreamError, SchemaMismatch, StoreError, TableError
from rollstream.replay.http_connection import HttpConnection, HttpReply
from rollstream.store import Members, Store

__all__ = ["PACKED", "Link", "ShardLink", "never_sent", "shard_url"]

PACKED = "application/octet-stream"
PAUSE_S = 0.05
"""Between two looks for a shard that is not there: short against a restart, cheap for Redis."""
SLACK_S = 3.0
"""How much longer than the shard's own deadline a client waits for its answer: a shard may be busy with a large snapshot."""
ERRORS: dict[str, type[RollstreamError]] = {
    "config": ConfigError,
    "deadline": DeadlineExceeded,
    "schema": SchemaMismatch,
    "table": TableError,
}


def shard_url(members: Members, shard: int, *, deadline_s: float | None = None) -> str | None:
    """Where the shard of this number answers; a ready member wins over one that is not."""
    records = members.list(deadline_s=deadline_s)
    there = [record for record in records if record.role == "replay" and record.shard == shard and record.url]
    there.sort(key=lambda record: (not record.ready, record.id))
    return there[0].url if there else None


def never_sent(shard: int) -> DeadlineExceeded:
    """What `Link.receive` raises when whoever sent a request was interrupted before it had: it is asked again."""
    return DeadlineExceeded(f"replay shard {shard} was asked nothing, since the request was interrupted; ask again")


class Link(Protocol):
    """What a client needs of a shard: over HTTP (`ShardLink`) or in the process (`rollstream.replay.local_requests`)."""

    def send(self, method: str, path: str, body: bytes = b"", *, content_type: str = PACKED) -> None:
        """Let the shard begin with a request."""
        ...

    def receive(self, *, deadline_s: float) -> bytes | bytearray:
        """The reply to what was sent last."""
        ...

    def request(self, method: str, path: str, body: bytes = b"", *, deadline_s: float) -> bytes | bytearray:
        """Both at once; from any thread."""
        ...

    def request_json(self, method: str, path: str, content: Any = None, *, deadline_s: float) -> Any:
        """As `request`, with JSON both ways."""
        ...

    def close(self) -> None:
        """Let go of connections."""
        ...


class ShardLink:
    """Requests to one shard, repeated until the deadline while it is away. All requests must bear repetition.

    `request` may be called from several threads, one after another; `send` and `receive` belong to one thread.

    Args:
        locate: gives the shard's URL, None while there is none; by default from the member records.
        slack_s: how much longer than its deadline an answer is waited for.
    """

    def __init__(
        self,
        store: Store,
        *,
        shard: int,
        clock: Clock,
        locate: Callable[[], str | None] | None = None,
        slack_s: float = SLACK_S,
    ) -> None:
        self.shard = shard
        self._slack_s = slack_s
        self._clock = clock
        self._members = Members(store)
        self._locate = locate
        self._lock = threading.Lock()
        self._connection: HttpConnection | None = None
        self._sent: tuple[str, str, bytes, str] | None = None

    def send(self, method: str, path: str, body: bytes = b"", *, content_type: str = PACKED) -> None:
        """Let the shard begin with a request; `receive` gets its reply. Failing to send is found out there."""
        self._sent = (method, path, body, content_type)
        try:
            connection = self._connected(0.0)
            if connection is not None:
                connection.send(method, path, body, timeout_s=self._slack_s, content_type=content_type)
        except (OSError, StoreError):
            self._connection = None

    def receive(self, *, deadline_s: float) -> bytes | bytearray:
        """The reply to what was sent last."""
        if self._sent is None:
            raise never_sent(self.shard)
        method, path, body, content_type = self._sent
        self._sent = None
        problem = ""
        deadline = Deadline(self._clock, after_s=deadline_s)
        if self._connection is not None:
            try:
                reply = self._connection.receive(timeout_s=deadline_s + self._slack_s)
            except OSError as error:
                problem = f"{self._connection.url}: {error}"
                self._connection = None
            else:
                if reply.status != 503:
                    return _checked(reply)
                problem = _problem(reply)
        return self._repeat(method, path, body, content_type=content_type, deadline=deadline, problem=problem)

    def request(
        self, method: str, path: str, body: bytes = b"", *, deadline_s: float, content_type: str = PACKED
    ) -> bytes | bytearray:
        """Body of the reply.

        Raises:
            DeadlineExceeded: the shard was not there or did not come to an answer in time.
            ConfigError, SchemaMismatch, TableError: what the shard refused, in its words.
            StoreUnavailable: Redis, which knows where the shard is, was not there in time.
        """
        with self._lock:
            deadline = Deadline(self._clock, after_s=deadline_s)
            return self._repeat(method, path, body, content_type=content_type, deadline=deadline, problem="")

    def request_json(self, method: str, path: str, content: Any = None, *, deadline_s: float) -> Any:
        """As `request`, with JSON both ways."""
        body = b"" if content is None else json.dumps(content).encode()
        return json.loads(self.request(method, path, body, deadline_s=deadline_s, content_type="application/json") or b"null")

    def close(self) -> None:
        """Close the connection, also with a reply outstanding; the link connects again when used again."""
        self._sent = None
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _repeat(
        self, method: str, path: str, body: bytes, *, content_type: str, deadline: Deadline, problem: str
    ) -> bytes | bytearray:
        """Try until the deadline; `problem`: of a first attempt, after which there is no second when the deadline has passed."""
        while True:
            if problem and deadline.passed():
                raise DeadlineExceeded(
                    f"replay shard {self.shard} did not serve {method} {path} within {deadline.waited_s():.1f} s ({problem}); "
                    "is a replay service running for this shard?"
                )
            if problem:
                self._clock.sleep(min(PAUSE_S, max(0.001, deadline.remaining_s())))
            try:
                connection = self._connected(deadline.remaining_s())
                if connection is None:
                    problem = "no member announces itself as this shard"
                else:
                    timeout_s = deadline.remaining_s() + self._slack_s
                    reply = connection.request(method, path, body, timeout_s=timeout_s, content_type=content_type)
                    if reply.status != 503:
                        return _checked(reply)
                    problem = _problem(reply)
            except OSError as error:
                problem = f"{self._connection.url if self._connection else 'no address'}: {error}"
            self.close()

    def _connected(self, deadline_s: float) -> HttpConnection | None:
        if self._connection is None:
            url = self._locate() if self._locate is not None else shard_url(self._members, self.shard, deadline_s=deadline_s)
            if url is not None:
                self._connection = HttpConnection(url)
        return self._connection


def _problem(reply: HttpReply) -> str:
    try:
        return str(json.loads(reply.body)["detail"])
    except (ValueError, KeyError, TypeError):
        return f"status {reply.status}"


def _checked(reply: HttpReply) -> bytes | bytearray:
    if reply.status < 400:
        return reply.body
    try:
        kind = str(json.loads(reply.body)["kind"])
    except (ValueError, KeyError, TypeError):
        kind = ""
    raise ERRORS.get(kind, TableError)(_problem(reply))
