"""A connection on which samples are asked for, without the web framework: the one request that comes a thousand times a second.

    first bytes ─┬─ POST /v1/tables/{id}/samples ─▶ answered here, in the event loop, in one piece
                 └─ anything else ────────────────▶ the web server's own protocol, from then on

A framework spends more time on parsing, routing and tasks than the shard on drawing a batch. Both kinds of connection come to the
same port, so there is nothing to announce, to open in a firewall or to fall back to. A client that goes away while it waits takes
its wish with it: nothing is drawn for nobody.
"""

from __future__ import annotations

import asyncio
import logging
import re
import socket
from collections.abc import Awaitable, Mapping
from typing import Protocol

from rollstream.store.connection import keepalive_options

__all__ = ["SampleAnswers", "SampleProtocol", "problem_reply", "reply_of"]

_LOG = logging.getLogger("rollstream.replay")
OURS = b"POST /v1/tables/"
REQUEST_LINE = re.compile(rb"POST /v1/tables/([a-zA-Z0-9._-]{1,128})/samples HTTP/1\.1")
LARGEST_HEAD_BYTES = 8 << 10
LARGEST_BODY_BYTES = 256 << 10
"""Of a request for samples: header and one number a batch. A larger one is the web server's business."""
TOO_MUCH_FOR_US = (b"transfer-encoding", b"expect", b"upgrade", b"connection", b"authorization")
"""Headers of requests that are left to the web server."""
OK = b"HTTP/1.1 200 OK\r\ncontent-type: application/octet-stream\r\ncontent-length: %d\r\n\r\n"
FAILED = b"HTTP/1.1 %d %b\r\ncontent-type: application/problem+json\r\ncontent-length: %d\r\n%b\r\n"


class SampleAnswers(Protocol):
    """Who answers: at once when it can, otherwise by something to wait for. Neither raises our own errors: they are replies."""

    def answer(self, table_id: str, body: bytes) -> bytes | Awaitable[bytes]:
        """The whole reply, head and body, or a way to wait for it."""
        ...

    def after(self, table_id: str) -> None:
        """Called when the reply is on its way: what it may have set free is looked after then."""
        ...


class SampleProtocol(asyncio.Protocol):
    """One connection. `inner` is the web server's protocol, which gets everything that is not for us."""

    def __init__(self, inner: asyncio.Protocol, answers: SampleAnswers) -> None:
        self._inner = inner
        self._answers = answers
        self._transport: asyncio.Transport | None = None
        self._ours = True
        self._full = False
        self._received = b""
        self._head = b""
        self._table_id = ""
        self._body_bytes = 0
        self._waiting: asyncio.Future[bytes] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]
        connection = transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # a client whose machine is gone says nothing
        for option, value in keepalive_options().items():
            connection.setsockopt(socket.IPPROTO_TCP, option, value)
        self._inner.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
        self._inner.connection_lost(exc)

    def eof_received(self) -> bool | None:
        return self._inner.eof_received()

    def pause_writing(self) -> None:
        self._full = True
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._full = False
        self._inner.resume_writing()
        self._work()

    def data_received(self, data: bytes) -> None:
        if not self._ours:
            self._inner.data_received(data)
            return
        self._received = self._received + data if self._received else data
        self._work()

    def _work(self) -> None:
        """Answer requests until one must wait, none is whole, or nobody fetches the answers."""
        while self._ours and self._received and self._waiting is None and not self._full:
            body = self._next_body()
            if body is None:
                return
            reply = self._answers.answer(self._table_id, body)
            if isinstance(reply, bytes):
                self._send(reply)
            else:
                self._waiting = asyncio.ensure_future(reply)
                self._waiting.add_done_callback(self._arrived)

    def _arrived(self, waiting: asyncio.Future[bytes]) -> None:
        self._waiting = None
        if waiting.cancelled():
            return
        error = waiting.exception()
        if error is None:
            self._send(waiting.result())
            self._work()
        elif self._transport is not None:
            _LOG.error("a request for samples of table %s failed", self._table_id, exc_info=error)
            self._transport.abort()

    def _send(self, reply: bytes) -> None:
        assert self._transport is not None, "a request came over it"
        self._transport.write(reply)
        asyncio.get_running_loop().call_soon(self._answers.after, self._table_id)

    def _next_body(self) -> bytes | None:
        """Body of the request that stands first in what was received; None when it is not whole or not for us."""
        received = self._received
        if self._head and received.startswith(self._head):  # a client says the same each time
            end = len(self._head)
        else:
            at = received.find(b"\r\n\r\n")
            if at < 0:
                if not (received.startswith(OURS[: len(received)])) or len(received) > LARGEST_HEAD_BYTES:
                    self._hand_over()
                return None
            end = at + 4
            if not self._understand(received[:end]):
                self._hand_over()
                return None
        whole = end + self._body_bytes
        if len(received) < whole:
            return None
        self._received = received[whole:]
        return received[end:whole]

    def _understand(self, head: bytes) -> bool:
        """Read a head; False when the request is not for us."""
        request_line, *lines = head[:-4].split(b"\r\n")
        found = REQUEST_LINE.fullmatch(request_line)
        if found is None:
            return False
        length = -1
        for line in lines:
            name, _, value = line.partition(b":")
            name, value = name.lower(), value.strip()
            if name == b"content-length" and value.isdigit():
                length = int(value)
            elif name in TOO_MUCH_FOR_US and value.lower() != b"keep-alive":
                return False
        if not 0 <= length <= LARGEST_BODY_BYTES:
            return False
        self._head, self._table_id, self._body_bytes = head, found.group(1).decode(), length
        return True

    def _hand_over(self) -> None:
        self._ours = False
        received, self._received = self._received, b""
        self._inner.data_received(received)


def reply_of(body: bytes) -> bytes:
    """A whole reply of packed bytes."""
    return OK % len(body) + body


def problem_reply(status: int, title: str, body: bytes, headers: Mapping[str, str] | None = None) -> bytes:
    """A whole reply that tells an error."""
    lines = "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items())
    return FAILED % (status, title.encode(), len(body), lines.encode()) + body
