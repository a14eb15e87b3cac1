"""A socket that speaks the Redis protocol by hand: for the row path, which sends and receives whole NumPy buffers.

It knows how to connect (unix, TCP, TLS), to introduce itself, to send buffers without copying them and to read replies. It does
not retry; its owner does, with `RawLink.attempt`, which connects again after a failure and gives up at the deadline.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar

import hiredis

from rollstream.clock import Clock, Deadline
from rollstream.store.address import Address
from rollstream.store.connection import keepalive_options
from rollstream.store.retry import Attempts

__all__ = ["Argument", "Command", "RawConnection", "RawLink", "pack", "raise_first_error"]

T = TypeVar("T")
Argument: TypeAlias = bytes | str | int
Command: TypeAlias = tuple[Argument, ...]

_RECEIVE_BYTES = 1 << 16
_UNIX_BUFFER_BYTES = 4 << 20
_JOIN_BYTES = 2 << 10  # buffers of this mean size or less are cheaper to copy together than to list for the kernel
_PARTS_MAX = 512  # half of what the kernel takes at most
_SHORTEST_TIMEOUT_S = 0.05
_CLIENT_NAME = b"rollstream-rows"


def pack(commands: Sequence[Command]) -> bytes:
    """The bytes of some ordinary commands, one after the other."""
    return b"".join(hiredis.pack_command(command) for command in commands)  # type: ignore[arg-type]


class RawConnection:
    """One connected, authenticated socket. Any exception leaves it unusable: close it."""

    def __init__(self, address: Address, context: ssl.SSLContext | None, *, timeout_s: float) -> None:
        self._reader = hiredis.Reader()
        self._received = bytearray(_RECEIVE_BYTES)
        self._socket = _connect(address, context, timeout_s)
        try:
            self._introduce(address)
        except BaseException:
            self.close()
            raise

    def set_timeout(self, timeout_s: float) -> None:
        """Seconds that one send or receive may take."""
        self._socket.settimeout(timeout_s)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def send(self, *parts: bytes | memoryview) -> None:
        """Send buffers as if they were one; what is large is not copied."""
        if sum(map(len, parts)) <= _JOIN_BYTES * len(parts):
            self._socket.sendall(parts[0] if len(parts) == 1 else b"".join(parts))
        elif isinstance(self._socket, ssl.SSLSocket):
            for part in parts:
                self._socket.sendall(part)
        else:
            for start in range(0, len(parts), _PARTS_MAX):
                self._send_parts(list(parts[start : start + _PARTS_MAX]))

    def _send_parts(self, parts: list[bytes | memoryview]) -> None:
        while parts:
            sent = self._socket.sendmsg(parts)
            done = 0
            while done < len(parts) and sent >= len(parts[done]):
                sent -= len(parts[done])
                done += 1
            del parts[:done]
            if parts and sent:
                parts[0] = memoryview(parts[0])[sent:]

    def receive_into(self, buffer: memoryview) -> int:
        """Receive at least one byte into `buffer`; returns how many."""
        count = self._socket.recv_into(buffer)
        if count == 0:
            raise ConnectionResetError("the server closed the connection")
        return count

    def receive_into_parts(self, parts: list[memoryview]) -> int:
        """Receive at least one byte into `parts`, filling one after the other; returns how many."""
        if isinstance(self._socket, ssl.SSLSocket):
            return self.receive_into(next(part for part in parts if len(part)))
        count = self._socket.recvmsg_into(parts)[0]
        if count == 0:
            raise ConnectionResetError("the server closed the connection")
        return count

    def feed(self, received: memoryview) -> None:
        """Hand bytes that were received by `receive_into` to the parser, for `replies`."""
        self._reader.feed(received)  # type: ignore[arg-type]

    def replies(self, count: int) -> list[Any]:
        """The next `count` replies; an error reply is returned as an exception, in its place."""
        found: list[Any] = []
        while len(found) < count:
            reply = self._reader.gets()
            if reply is False:
                size = self.receive_into(memoryview(self._received))
                self._reader.feed(memoryview(self._received)[:size])  # type: ignore[arg-type]
            else:
                found.append(reply)
        return found

    def _introduce(self, address: Address) -> None:
        commands: list[Command] = []
        if address.password is not None:
            user = (address.username,) if address.username else ()
            commands.append((b"AUTH", *user, address.password))
        if address.db:
            commands.append((b"SELECT", address.db))
        must_succeed = len(commands)
        commands.append((b"CLIENT", b"SETNAME", _CLIENT_NAME))  # a courtesy to operators, which an ACL may forbid
        self._socket.sendall(pack(commands))
        raise_first_error(self.replies(len(commands))[:must_succeed])


def raise_first_error(replies: Sequence[Any]) -> None:
    """Raise the first error among `replies`."""
    for reply in replies:
        if isinstance(reply, Exception):
            raise reply


class RawLink:
    """A `RawConnection` that is made when needed and made again after a failure. Not thread-safe.

    Attributes:
        deadline_s: how long an attempt may take from now on.
    """

    def __init__(self, address: Address, *, clock: Clock, deadline_s: float, socket_timeout_s: float) -> None:
        self._address = address
        self._clock = clock
        self.deadline_s = deadline_s
        self._socket_timeout_s = socket_timeout_s
        self._context: ssl.SSLContext | None = None
        self._connection: RawConnection | None = None

    def attempt(self, what: str, operation: Callable[[RawConnection], T]) -> T:
        """Run `operation(connection)` until it succeeds, as `Store.run` does; it must be idempotent.

        Raises:
            StoreRefused, StoreError, StoreUnavailable: as `Store.run`.
        """
        attempts = Attempts(what, str(self._address), clock=self._clock, deadline_s=self.deadline_s)
        deadline = Deadline(self._clock, after_s=self.deadline_s)
        while True:
            timeout_s = max(_SHORTEST_TIMEOUT_S, min(self._socket_timeout_s, deadline.remaining_s()))
            try:
                connection = self._connected(timeout_s)
                connection.set_timeout(timeout_s)
                return operation(connection)
            except (OSError, hiredis.HiredisError) as error:
                self.close()
                self._clock.sleep(attempts.failed(error))
            except BaseException:
                self.close()  # half a reply may be left in it
                raise

    @property
    def connection(self) -> RawConnection | None:
        """The connection of the last attempt, if it still stands."""
        return self._connection

    def close(self) -> None:
        """Close the connection; it is made again when used again."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connected(self, timeout_s: float) -> RawConnection:
        if self._connection is None:
            if self._address.transport == "tls" and self._context is None:
                self._context = self._address.ssl_context()
            self._connection = RawConnection(self._address, self._context, timeout_s=timeout_s)
        return self._connection


def _connect(address: Address, context: ssl.SSLContext | None, timeout_s: float) -> socket.socket:
    if address.transport == "unix":
        local = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            local.settimeout(timeout_s)
            for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
                local.setsockopt(socket.SOL_SOCKET, option, _UNIX_BUFFER_BYTES)
            local.connect(address.path)
        except OSError:
            local.close()
            raise
        return local
    remote = socket.create_connection((address.host, address.port), timeout=timeout_s)
    try:
        remote.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        remote.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in keepalive_options().items():
            remote.setsockopt(socket.IPPROTO_TCP, option, value)
        return context.wrap_socket(remote, server_hostname=address.host) if context is not None else remote
    except OSError:
        remote.close()
        raise
