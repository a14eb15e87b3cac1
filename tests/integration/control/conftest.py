"""A whole control in a thread of the test process, on a real server, reached over real HTTP."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import httpx
import pytest
import structlog

from rollstream.clock import SystemClock
from rollstream.store import Address, MemberRecord, Members, Store
from rollstream_control.settings import ControlSettings
from rollstream_control.wiring import main
from rollstream_service.health import Health
from rollstream_service.lifecycle import Life

STARTS_WITHIN_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningControl:
    """A control that serves."""

    url: str
    http: httpx.Client
    life: Life


StartControl: TypeAlias = Callable[..., Any]


@pytest.fixture
def start_control(store: Store, address: Address) -> StartControl:
    """`with start_control(operator_token=...) as control:` runs one until the block ends."""

    @contextmanager
    def start(*, member: str = "control-0", token: str | None = None, **settings: Any) -> Iterator[RunningControl]:
        clock = SystemClock()
        life = Life(role="control", member=member, clock=clock, health=Health(clock), log=structlog.get_logger("test"))
        given = ControlSettings(
            redis_url=str(address), **{"backend": "local", "grace_s": 5.0, "heartbeat_every_s": 0.2, **settings}
        )
        failures: list[BaseException] = []
        thread = threading.Thread(target=_run, args=(given, life, failures), name="control-under-test")
        thread.start()
        try:
            record = _wait_for(Members(store), member, failures)
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            with httpx.Client(base_url=record.url, headers=headers, timeout=30.0) as client:
                yield RunningControl(url=record.url, http=client, life=life)
        finally:
            life.stopping.set()
            thread.join()
            assert not failures, failures

    return start


def _run(settings: ControlSettings, life: Life, failures: list[BaseException]) -> None:
    try:
        main(settings, life)
    except BaseException as error:
        failures.append(error)
        life.stopping.set()


def _wait_for(members: Members, member: str, failures: list[BaseException]) -> MemberRecord:
    clock = SystemClock()
    end_s = clock.monotonic_s() + STARTS_WITHIN_S
    while clock.monotonic_s() < end_s and not failures:
        record = members.get(member)
        if record is not None:
            return record
        clock.sleep(0.02)
    raise AssertionError(f"control did not start: {failures}")


@pytest.fixture
def control(start_control: StartControl) -> Iterator[RunningControl]:
    """A control without tokens, with the local backend."""
    with start_control() as running:
        yield running


@pytest.fixture
def eventually() -> Callable[[Callable[[], Any]], Any]:
    """`eventually(look)` calls `look` until it returns something true, and returns that; fails after a generous while."""

    def wait(look: Callable[[], Any]) -> Any:
        clock = SystemClock()
        end_s = clock.monotonic_s() + 20.0
        while True:
            found = look()
            if found or clock.monotonic_s() > end_s:
                assert found, "it never came true"
                return found
            clock.sleep(0.02)

    return wait
