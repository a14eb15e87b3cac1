"""A connection for samples: which requests it answers itself, in any cut of the bytes, and what it leaves to the web server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from rollstream_replay.sample_protocol import SampleProtocol, problem_reply, reply_of


class Inner(asyncio.Protocol):
    """Stands for the web server: keeps what it is given, answers "inner"."""

    def __init__(self) -> None:
        self.received = b""
        self.transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.received += data
        self.transport.write(b"inner")


class Answers:
    """Answers with the table and the body; a body of `wait` waits for `released`."""

    def __init__(self) -> None:
        self.released = asyncio.Event()
        self.cancelled = 0
        self.looked_after: list[str] = []

    def answer(self, table_id: str, body: bytes) -> bytes | Awaitable[bytes]:
        if body == b"fail":
            return self._fail()
        if body != b"wait":
            return reply_of(table_id.encode() + b"|" + body)
        return self._later()

    def after(self, table_id: str) -> None:
        self.looked_after.append(table_id)

    async def _fail(self) -> bytes:
        raise ZeroDivisionError("a fault of ours")

    async def _later(self) -> bytes:
        try:
            await self.released.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return reply_of(b"late")


def request(body: bytes, *, path: str = "/v1/tables/run.t/samples", headers: str = "", method: str = "POST") -> bytes:
    return f"{method} {path} HTTP/1.1\r\nHost: here\r\n{headers}Content-Length: {len(body)}\r\n\r\n".encode() + body


class Talk:
    """A client's end of one connection, and the server's parts."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, inner: Inner, answers: Answers) -> None:
        self.reader, self.writer, self.inner, self.answers = reader, writer, inner, answers

    async def reply(self) -> bytes:
        head = await asyncio.wait_for(self.reader.readuntil(b"\r\n\r\n"), 5)
        length = int(head.split(b"content-length: ")[1].split(b"\r\n")[0])
        return await self.reader.readexactly(length)


def talk(scenario: Callable[[Talk], Coroutine[Any, Any, None]]) -> None:
    """Run `scenario` against a server with one connection."""

    async def run() -> None:
        inner, answers = Inner(), Answers()
        server = await asyncio.get_running_loop().create_server(lambda: SampleProtocol(inner, answers), "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            await scenario(Talk(reader, writer, inner, answers))
        finally:
            writer.close()
            server.close()

    asyncio.run(run())


def test_requests_for_samples_are_answered_without_the_web_server() -> None:
    async def scenario(it: Talk) -> None:
        for body in (b"one", b"two", b"longer than before"):
            it.writer.write(request(body))
            assert await it.reply() == b"run.t|" + body
        it.writer.write(request(b"x", path="/v1/tables/other/samples"))
        assert await it.reply() == b"other|x"
        assert it.inner.received == b""
        await asyncio.sleep(0)
        assert set(it.answers.looked_after) == {"run.t", "other"}

    talk(scenario)


def test_requests_cut_anywhere_and_several_at_once_are_understood() -> None:
    async def scenario(it: Talk) -> None:
        whole = request(b"abc") + request(b"") + request(b"defg")
        for at in range(0, len(whole), 7):
            it.writer.write(whole[at : at + 7])
            await it.writer.drain()
            await asyncio.sleep(0.001)
        assert [await it.reply() for _ in range(3)] == [b"run.t|abc", b"run.t|", b"run.t|defg"]

    talk(scenario)


def test_what_comes_while_a_request_waits_is_answered_after_it() -> None:
    async def scenario(it: Talk) -> None:
        it.writer.write(request(b"wait") + request(b"next"))
        await it.writer.drain()
        it.writer.write(request(b"third"))
        await asyncio.sleep(0.02)
        it.answers.released.set()
        assert [await it.reply() for _ in range(3)] == [b"late", b"run.t|next", b"run.t|third"]

    talk(scenario)


def test_a_client_that_leaves_takes_its_wish_with_it() -> None:
    async def scenario(it: Talk) -> None:
        it.writer.write(request(b"wait"))
        await it.writer.drain()
        await asyncio.sleep(0.02)
        it.writer.close()
        await it.writer.wait_closed()
        for _ in range(100):
            await asyncio.sleep(0.005)
            if it.answers.cancelled:
                break
        assert it.answers.cancelled == 1

    talk(scenario)


def test_a_fault_of_ours_is_logged_and_ends_the_connection(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(it: Talk) -> None:
        it.writer.write(request(b"fail"))
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await it.reply()
        assert "a request for samples of table run.t failed" in caplog.text

    talk(scenario)


@pytest.mark.parametrize(
    "other",
    [
        request(b"", path="/v1/tables/run.t", method="GET"),
        request(b"{}", path="/v1/tables/run.t/items/find"),
        request(b"ab", headers="Expect: 100-continue\r\n"),
        request(b"ab", headers="Connection: close\r\n"),
        b"POST /v1/tables/run.t/samples HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /v1/tables/run.t/samples HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n",
        b"POST /v1/tables/run.t/samples HTTP/1.1\r\nContent-Length: x\r\n\r\n",
        b"\x16\x03\x01 not HTTP",
        b"POST /v1/tables/" + b"x" * 9000,
    ],
)
def test_everything_else_is_left_to_the_web_server_from_then_on(other: bytes) -> None:
    async def scenario(it: Talk) -> None:
        it.writer.write(request(b"first"))
        assert await it.reply() == b"run.t|first"
        it.writer.write(other)
        assert await asyncio.wait_for(it.reader.readexactly(5), 5) == b"inner"
        it.writer.write(request(b"after"))
        assert await asyncio.wait_for(it.reader.readexactly(5), 5) == b"inner"
        assert it.inner.received == other + request(b"after")

    talk(scenario)


def test_a_client_that_fetches_no_replies_gets_no_more_of_them() -> None:
    async def scenario(it: Talk) -> None:
        body = b"x" * 200_000
        for _ in range(200):
            it.writer.write(request(body))
        await asyncio.sleep(0.3)
        assert len(it.answers.looked_after) < 150
        for _ in range(200):
            assert len(await it.reply()) == len(body) + 6

    talk(scenario)


def test_a_problem_is_a_whole_reply() -> None:
    reply = problem_reply(503, "Service Unavailable", b"{}", {"Retry-After": "1"})
    assert reply == (
        b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/problem+json\r\ncontent-length: 2\r\n"
        b"Retry-After: 1\r\n\r\n{}"
    )
