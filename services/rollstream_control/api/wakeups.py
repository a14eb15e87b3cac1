"""Carries "something changed" from the scheduler's thread to the event streams in the loop, so that none of them polls Redis.

One connection waits on `rs:changes` for all of them: a thousand open streams cost no thread and no connection.
"""

from __future__ import annotations

import asyncio
import threading

__all__ = ["Wakeups"]


class Wakeups:
    """`notify` from any thread, `wait` in the loop.

    Args:
        stopping: set when the process is to end; streams end at their next wake-up.
    """

    def __init__(self, stopping: threading.Event) -> None:
        self._stopping = stopping
        self._lock = threading.Lock()
        self._waiting: dict[asyncio.Event, asyncio.AbstractEventLoop] = {}

    @property
    def closed(self) -> bool:
        """True once the process is stopping: streams end."""
        return self._stopping.is_set()

    def notify(self) -> None:
        """Wake everybody who waits now."""
        with self._lock:
            woken = list(self._waiting.items())
            self._waiting.clear()
        for event, loop in woken:
            if not loop.is_closed():
                loop.call_soon_threadsafe(event.set)

    def subscribe(self) -> asyncio.Event:
        """An event that the next `notify` sets. Subscribe, then look, then wait: nothing falls between."""
        event = asyncio.Event()
        with self._lock:
            self._waiting[event] = asyncio.get_running_loop()
        return event

    async def wait(self, event: asyncio.Event, *, timeout_s: float) -> None:
        """Wait for `event` (of `subscribe`) for at most `timeout_s`."""
        try:
            await asyncio.wait_for(event.wait(), timeout_s)
        except TimeoutError:
            pass
        finally:
            with self._lock:
                self._waiting.pop(event, None)
