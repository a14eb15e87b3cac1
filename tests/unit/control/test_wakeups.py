"""Wake-ups from a thread to coroutines."""

from __future__ import annotations

import asyncio
import threading

from rollstream_control.api.wakeups import Wakeups


def test_a_notification_from_a_thread_wakes_everybody_who_subscribed_before() -> None:
    async def scenario() -> list[bool]:
        wakeups = Wakeups(threading.Event())
        events = [wakeups.subscribe() for _ in range(3)]
        await asyncio.to_thread(wakeups.notify)
        await asyncio.gather(*(wakeups.wait(event, timeout_s=30.0) for event in events))
        return [event.is_set() for event in events]

    assert asyncio.run(scenario()) == [True, True, True]


def test_a_notification_between_subscribing_and_waiting_is_not_lost() -> None:
    async def scenario() -> bool:
        wakeups = Wakeups(threading.Event())
        event = wakeups.subscribe()
        wakeups.notify()
        await wakeups.wait(event, timeout_s=30.0)
        return event.is_set()

    assert asyncio.run(scenario())


def test_a_wait_that_nobody_ends_is_over_after_its_time() -> None:
    async def scenario() -> bool:
        wakeups = Wakeups(threading.Event())
        event = wakeups.subscribe()
        await wakeups.wait(event, timeout_s=0.01)
        return event.is_set()

    assert not asyncio.run(scenario())


def test_closed_follows_the_process() -> None:
    stopping = threading.Event()
    wakeups = Wakeups(stopping)
    assert not wakeups.closed
    stopping.set()
    assert wakeups.closed
