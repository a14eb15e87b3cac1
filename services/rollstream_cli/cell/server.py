"""The embedded Redis of a cell, kept alive: its data is on disk, so a restart loses at most the last second of writes."""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable
from pathlib import Path

from rollstream.clock import Clock
from rollstream.errors import RollstreamError
from rollstream.store import Address, EmbeddedServer
from rollstream_cli.cell.backoff import Backoff
from rollstream_cli.leash import leashed

__all__ = ["KeptServer", "wait_for_exit"]

LOOK_EVERY_S = 0.2


class KeptServer:
    """An embedded server with a thread that starts it again when it dies."""

    def __init__(
        self, directory: Path, *, clock: Clock, on_hopeless: Callable[[str], None], on_death: Callable[[str], None]
    ) -> None:
        self.restarts = 0
        self._directory = directory
        self._clock = clock
        self._on_hopeless = on_hopeless
        self._on_death = on_death
        self._server = EmbeddedServer(directory, clock=clock, launcher=leashed())
        self._stopping = threading.Event()
        self._started = threading.Event()
        self._address: Address | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._live, name="embedded-server", daemon=True)

    def start(self) -> Address:
        """Start the server and wait until it answers."""
        self._directory.mkdir(parents=True, exist_ok=True)
        self._thread.start()
        self._started.wait()
        if self._error is not None:
            self._thread.join()
            raise self._error
        assert self._address is not None, "either an error or an address"
        return self._address

    @property
    def pid(self) -> int | None:
        """Process id; None between two lives."""
        return self._server.pid if self._address is not None and self._server.poll() is None else None

    def stop(self) -> None:
        """Stop the server, which writes its last data, and the thread."""
        self._stopping.set()
        self._server.stop()
        if self._thread.ident is not None:
            self._thread.join(timeout=15.0)
            self._server.stop()  # one that was just being started again

    def _live(self) -> None:
        # The first start is done here too: the leash ends the server when the thread that started it ends.
        try:
            self._address = self._server.start()
        except BaseException as error:
            self._error = error
            return
        finally:
            self._started.set()
        backoff = Backoff()
        while True:
            started_s = self._clock.monotonic_s()
            wait_for_exit(self._server.pid, stopping=self._stopping)
            if self._stopping.is_set():
                return
            self._on_death("the embedded Redis ended: starting it again on its data")
            if self._stopping.wait(backoff.next_s(lived_s=self._clock.monotonic_s() - started_s)):
                return
            self.restarts += 1
            try:
                self._server.restart()
            except RollstreamError as error:
                if not self._stopping.is_set():
                    self._on_hopeless(f"the embedded Redis died and cannot be started again: {error}")
                return


def wait_for_exit(pid: int, *, stopping: threading.Event | None = None, timeout_s: float | None = None) -> bool:
    """Wait until process `pid` (not necessarily a child) has ended, without collecting its exit code.

    Returns:
        True when it ended; False when `stopping` was set first or `timeout_s` passed.
    """
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    except (AttributeError, OSError):  # no Linux, or an old one
        return _look_for_exit(pid, stopping=stopping, timeout_s=timeout_s)
    try:
        ready, _, _ = select.select([descriptor], [], [], timeout_s)
        return bool(ready)
    finally:
        os.close(descriptor)


def _look_for_exit(pid: int, *, stopping: threading.Event | None, timeout_s: float | None) -> bool:
    stop = stopping or threading.Event()
    looks = None if timeout_s is None else int(timeout_s / LOOK_EVERY_S) + 1
    while looks is None or looks > 0:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        if stop.wait(LOOK_EVERY_S):
            return False
        looks = None if looks is None else looks - 1
    return False
