"""A port in use is named, by services with an API and by those with probes only."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from rollstream.clock import FakeClock
from rollstream.errors import ConfigError
from rollstream_service.health import Health
from rollstream_service.http import listen
from rollstream_service.probes import ProbeServer

MESSAGE = (
    r"cannot listen on 127.0.0.1:\d+ \(Address already in use\); free the port, or set ROLLSTREAM_PORT to another \(0: any\)"
)


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def test_an_api_names_the_port(taken: int) -> None:
    with pytest.raises(ConfigError, match=MESSAGE):
        listen("127.0.0.1", taken)


def test_probes_name_the_port(taken: int) -> None:
    with pytest.raises(ConfigError, match=MESSAGE):
        ProbeServer(host="127.0.0.1", port=taken, health=Health(FakeClock()), metrics=lambda: b"")


def test_port_0_takes_a_free_one() -> None:
    with listen("127.0.0.1", 0) as bound:
        assert bound.getsockname()[1] > 0
