"""O84: a consumer dies silently while its pod is "Running", because only one kind of error was caught.

Here: whatever an outage looks like (connection refused, reset, time-out, still loading), `run` backs off with jitter and goes on.
"""

from __future__ import annotations

import itertools

import pytest
import redis

from rollstream.clock import FakeClock
from rollstream.store import EmbeddedServer, Store

OUTAGE = [
    redis.ConnectionError("Error 111 connecting to cache:6379. Connection refused."),
    redis.TimeoutError("Timeout reading from socket"),
    ConnectionResetError(104, "Connection reset by peer"),
    BrokenPipeError(32, "Broken pipe"),
    TimeoutError("timed out"),
    redis.exceptions.BusyLoadingError("Redis is loading the dataset in memory"),
    redis.exceptions.ReadOnlyError("You can't write against a read only replica."),
    redis.exceptions.MasterDownError("Link with MASTER is down"),
    redis.ResponseError("UNBLOCKED force unblock from blocking operation, instance state changed"),
]


def test_every_kind_of_outage_is_waited_out(store: Store, clock: FakeClock) -> None:
    patient = Store(store.address, clock=clock, deadline_s=30.0)
    outage = iter(OUTAGE)

    def operation(client: redis.Redis) -> object:
        error = next(outage, None)
        if error is not None:
            raise error
        return client.ping()

    assert patient.run("ask", operation)
    assert 0.0 < clock.monotonic_s() < 30.0
    patient.close()


def test_an_outage_of_thirty_seconds_costs_few_attempts(store: Store, server: EmbeddedServer, clock: FakeClock) -> None:
    server.stop()
    patient = Store(store.address, clock=clock, deadline_s=60.0)
    attempts = []

    def operation(client: redis.Redis) -> object:
        attempts.append(clock.monotonic_s())
        if clock.monotonic_s() >= 30.0:
            server.start()
        return client.ping()

    assert patient.run("ask", operation)
    assert len(attempts) < 80
    assert max(after - before for before, after in itertools.pairwise(attempts)) == pytest.approx(1.0, abs=0.1)
    patient.close()
