"""One persistent HTTP/1.1 connection, by hand: a request costs a replay client tens of microseconds instead of hundreds.

It speaks the little that replay shards speak: request with Content-Length, reply with Content-Length. A request may be sent and
its reply read later (`send`, then `receive`), so that the shard works while the client fetches rows, and several shards at once.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass
from urllib.parse import urlsplit

from rollstream.errors import ConfigError, StoreError

__all__ = ["HttpConnection", "HttpReply"]

CONNECT_TIMEOUT_S = 5.0
BUFFER_BYTES = 64 << 10
"""Heads must fit, and replies of a few hundred samples do."""
SHORTEST_TIMEOUT_S = 0.001


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpReply:
    """Status and body of a reply."""

    status: int
    body: bytes | bytearray


class HttpConnection:
    """A connection to one server; connects when first used. After any exception it is closed and may be used again."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme != "http" or not parts.hostname:
            raise ConfigError(f"replay shard URL must be http://host:port, got {url!r}")
        self.url = url
        self._host, self._port = parts.hostname, parts.port or 80
        self._path = parts.path.rstrip("/")
        self._host_line = f" HTTP/1.1\r\nHost: {self._host}:{self._port}\r\nContent-Length: "
        self._socket: socket.socket | None = None
        self._reply_is_due = False
        self._buffer = bytearray(BUFFER_BYTES)

    def request(self, method: str, path: str, body: bytes = b"", *, timeout_s: float, content_type: str = "") -> HttpReply:
        """Send a request and wait for its reply. One that meets a connection closed while idle is sent again.

        Raises:
            OSError: the server cannot be reached, or did not answer within `timeout_s`.
        """
        fresh = self._socket is None
        try:
            self.send(method, path, body, timeout_s=timeout_s, content_type=content_type)
            return self.receive(timeout_s=timeout_s)
        except ConnectionError:
            if fresh:
                raise
            self.send(method, path, body, timeout_s=timeout_s, content_type=content_type)
            return self.receive(timeout_s=timeout_s)

    def send(self, method: str, path: str, body: bytes = b"", *, timeout_s: float, content_type: str = "") -> None:
        """Send a request; the reply is to be read with `receive` before the next is sent, or it is thrown away."""
        if self._reply_is_due:  # who sent it was interrupted
            self.close()
        kind = f"\r\nContent-Type: {content_type}" if content_type else ""
        head = f"{method} {self._path}{path}{self._host_line}{len(body)}{kind}\r\n\r\n".encode()
        timeout_s = max(SHORTEST_TIMEOUT_S, timeout_s)
        try:
            if self._socket is None:
                self._socket = socket.create_connection((self._host, self._port), timeout=min(CONNECT_TIMEOUT_S, timeout_s))
                self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._socket.settimeout(timeout_s)
            self._reply_is_due = True
            self._socket.sendall(head + body)
        except BaseException:
            self.close()
            raise

    def receive(self, *, timeout_s: float) -> HttpReply:
        """Read the reply to what was sent."""
        try:
            reply = self._receive(max(SHORTEST_TIMEOUT_S, timeout_s))
            self._reply_is_due = False
            return reply
        except BaseException:
            self.close()  # also when a person interrupts: half a reply is not the next one's
            raise

    def close(self) -> None:
        """Close the socket; the next request connects again."""
        if self._socket is not None:
            self._socket.close()
        self._socket = None
        self._reply_is_due = False

    def _receive(self, timeout_s: float) -> HttpReply:
        connection = self._socket
        if connection is None:
            raise ConnectionResetError("not connected")
        connection.settimeout(timeout_s)
        buffer, have = self._buffer, 0
        view = memoryview(buffer)
        while (end := buffer.find(b"\r\n\r\n", 0, have)) < 0:
            if have == len(buffer):
                raise StoreError(f"replay shard at {self.url} answered with something that is not HTTP")
            have += self._more(connection, view[have:])
        status, length, keeps = _parse_head(bytes(view[:end]), self.url)
        begin = end + 4
        if have > begin + length:
            raise StoreError(f"replay shard at {self.url} answered more than it was asked")
        if begin + length <= len(buffer):
            while have < begin + length:
                have += self._more(connection, view[have:])
            body: bytes | bytearray = bytes(view[begin : begin + length])
        else:
            body = bytearray(length)
            whole = memoryview(body)
            filled = have - begin
            whole[:filled] = view[begin:have]
            while filled < length:
                filled += self._more(connection, whole[filled:])
        if not keeps:
            self.close()
        return HttpReply(status=status, body=body)

    def _more(self, connection: socket.socket, into: memoryview) -> int:
        count = connection.recv_into(into)
        if count == 0:
            raise ConnectionResetError("closed before the end of a reply")
        return count


def _parse_head(head: bytes, url: str) -> tuple[int, int, bool]:
    """Status, length of the body, and whether the connection stays open."""
    lines = head.split(b"\r\n")
    words = lines[0].split(b" ", 2)
    length, keeps = 0, True
    for line in lines[1:]:
        name, _, value = line.partition(b":")
        name = name.lower()
        if name == b"content-length":
            length = int(value)
        elif name == b"connection":
            keeps = b"close" not in value.lower()
        elif name == b"transfer-encoding":
            raise StoreError(f"replay shard at {url} answered in chunks; is it behind a proxy that rewrites replies?")
    if len(words) < 2 or not words[0].startswith(b"HTTP/1.") or not words[1].isdigit():
        raise StoreError(f"replay shard at {url} answered with something that is not HTTP")
    return int(words[1]), length, keeps
