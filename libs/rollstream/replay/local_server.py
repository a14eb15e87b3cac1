"""The embedded server of a `LocalReplay`: started again when it dies, and never outliving its owner.

A thread of its own starts the server and stays, because on Linux the kernel ends the server with the thread that started it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from pathlib import Path

from rollstream.clock import Clock
from rollstream.errors import RollstreamError
from rollstream.store import Address, EmbeddedServer
from rollstream.store.tied import tied

__all__ = ["THREAD_PREFIX", "LocalServer"]

THREAD_PREFIX = "local-replay"
"""Beginning of the names of all threads that a `LocalReplay` has for itself."""
LOOK_EVERY_S = 0.1
_LOG = logging.getLogger("rollstream.replay")


class LocalServer:
    """A server in `directory`, from `start` to `stop`."""

    def __init__(self, directory: Path, *, clock: Clock, settings: Mapping[str, str]) -> None:
        self._server = EmbeddedServer(directory, clock=clock, settings=settings, launcher=tied())
        self._started, self._stopping = threading.Event(), threading.Event()
        self._address: Address | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._live, name=f"{THREAD_PREFIX}-server", daemon=True)

    def start(self) -> Address:
        """Start it; raises what `EmbeddedServer.start` raises."""
        self._thread.start()
        self._started.wait()
        if self._error is not None:
            raise self._error
        assert self._address is not None, "either an error or an address"
        return self._address

    def stop(self) -> None:
        """Stop it; its data stay in the directory."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _live(self) -> None:
        try:
            self._address = self._server.start()
        except BaseException as error:
            self._error = error
            return
        finally:
            self._started.set()
        while not self._stopping.wait(LOOK_EVERY_S):
            if self._server.poll() is not None:
                _LOG.error("the embedded server of LocalReplay ended with status %s; starting it again", self._server.poll())
                self._restart()
        self._server.stop()

    def _restart(self) -> None:
        """Start it on the data that it wrote. Whoever uses it waits meanwhile, each until its own deadline."""
        try:
            self._server.restart()
        except RollstreamError as error:
            _LOG.error("the embedded server of LocalReplay cannot be started again: %s", error)
