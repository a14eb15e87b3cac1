"""The hand-written HTTP connection, against a server that answers byte by byte what a test says."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from rollstream.errors import ConfigError, StoreError
from rollstream.replay.http_connection import HttpConnection

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello"


@pytest.fixture
def server() -> Iterator[Callable[..., str]]:
    """Serves, for each connection, a list of answers (bytes, or pieces of bytes), then closes it; gives the URL."""
    listener = socket.create_server(("127.0.0.1", 0))
    scripts: list[list[list[bytes]]] = []

    def run() -> None:
        with suppress(OSError):
            for script in list(scripts):
                connection, _ = listener.accept()
                with connection:
                    for pieces in script:
                        connection.recv(65536)
                        for piece in pieces:
                            connection.sendall(piece)

    threads: list[threading.Thread] = []

    def start(*connections: list[list[bytes]]) -> str:
        scripts.extend(connections)
        threads.append(threading.Thread(target=run))
        threads[0].start()
        return f"http://127.0.0.1:{listener.getsockname()[1]}"

    yield start
    listener.close()
    for thread in threads:
        thread.join(timeout=5)


def test_replies_arrive_in_pieces_of_any_size(server: Callable[..., str]) -> None:
    url = server([[bytes([byte]) for byte in OK], [OK[:30], OK[30:]], [OK]])
    connection = HttpConnection(url)
    for _ in range(3):
        reply = connection.request("GET", "/x", timeout_s=5.0)
        assert (reply.status, reply.body) == (200, b"hello")
    connection.close()


def test_a_connection_closed_while_idle_is_made_again(server: Callable[..., str]) -> None:
    connection = HttpConnection(server([[OK]], [[OK]]))
    assert connection.request("GET", "/x", timeout_s=5.0).body == b"hello"
    assert connection.request("GET", "/x", timeout_s=5.0).body == b"hello"
    connection.close()


def test_a_reply_that_ends_early_is_an_error_of_the_connection(server: Callable[..., str]) -> None:
    connection = HttpConnection(server([[OK[:-2]]]))
    with pytest.raises(OSError, match="closed before the end of a reply"):
        connection.request("GET", "/x", timeout_s=5.0)


def test_replies_larger_than_the_buffer_arrive_whole(server: Callable[..., str]) -> None:
    large = bytes(range(256)) * 1024
    answer = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(large) + large
    connection = HttpConnection(server([[answer[:100], answer[100:70_000], answer[70_000:]], [OK]]))
    assert connection.request("GET", "/x", timeout_s=5.0).body == large
    assert connection.request("GET", "/x", timeout_s=5.0).body == b"hello"
    connection.close()


def test_an_answer_that_comes_too_late_closes_the_connection_so_that_the_next_reply_is_the_next_requests(
    server: Callable[..., str],
) -> None:
    connection = HttpConnection(server([[OK.replace(b"hello", b"early")], [OK[:20]]], [[OK]]))
    assert connection.request("GET", "/x", timeout_s=5.0).body == b"early"
    connection.send("GET", "/x", timeout_s=5.0)
    with pytest.raises(OSError, match="timed out|closed before the end"):
        connection.receive(timeout_s=0.05)
    assert connection.request("GET", "/x", timeout_s=5.0).body == b"hello"
    connection.close()


def test_more_than_was_asked_for_is_refused(server: Callable[..., str]) -> None:
    connection = HttpConnection(server([[OK + b"and more"]]))
    with pytest.raises(StoreError, match="answered more than it was asked"):
        connection.request("GET", "/x", timeout_s=5.0)


def test_what_is_not_plain_http_is_refused(server: Callable[..., str]) -> None:
    url = server([[b"SSH-2.0-x\r\n\r\n\r\n"]], [[b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"]])
    connection = HttpConnection(url)
    with pytest.raises(StoreError, match="answered with something that is not HTTP"):
        connection.request("GET", "/x", timeout_s=5.0)
    connection.close()
    with pytest.raises(StoreError, match="answered in chunks; is it behind a proxy"):
        connection.request("GET", "/x", timeout_s=5.0)
    connection.close()


def test_only_plain_http_addresses_are_accepted() -> None:
    with pytest.raises(ConfigError, match="replay shard URL must be http://host:port, got 'ftp://x'"):
        HttpConnection("ftp://x")


def test_a_reply_that_nobody_took_is_not_that_of_the_next_request(server: Callable[..., str]) -> None:
    connection = HttpConnection(server([[OK.replace(b"hello", b"first")]], [[OK]]))
    connection.send("GET", "/first", timeout_s=5.0)  # and whoever sent it was interrupted
    connection.send("GET", "/second", timeout_s=5.0)
    assert connection.receive(timeout_s=5.0).body == b"hello"
    connection.close()
