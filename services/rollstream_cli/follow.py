"""Follow a run over REST: two live streams, reports and events, put on one queue that the main thread reads.

    GET .../reports (SSE) ──▶ thread ──▶ ┐
    GET .../events  (SSE) ──▶ thread ──▶ ├─▶ queue ──▶ main thread: progress, end of the run
    Ctrl-C (signal handler) ───────────▶ │
    a process of the cell cannot work ─▶ ┘

A stream that breaks, because control is being restarted, is opened again after its last event; nothing is shown twice.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, Literal, TypeAlias

from rollstream.clock import Clock
from rollstream.errors import RollstreamError
from rollstream_cli.errors import RestError
from rollstream_cli.rest import Rest

__all__ = ["Follower", "Happening", "Inbox"]

AGAIN_AFTER_S = 0.3
Kind: TypeAlias = Literal["report", "event", "interrupt", "cell-failed", "follow-failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """Something that the main thread must hear of."""

    kind: Kind
    data: dict[str, Any]
    message: str = ""


class Inbox:
    """The one queue of a command. `put` may be called from signal handlers."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[Happening] = SimpleQueue()

    def put(self, happening: Happening) -> None:
        self._queue.put(happening)

    def next(self, *, timeout_s: float) -> Happening | None:
        """The next happening; None when none came in time."""
        try:
            return self._queue.get(timeout=timeout_s)
        except Empty:
            return None


class Follower:
    """Two threads that read the streams of one experiment until closed."""

    def __init__(self, rest: Rest, experiment: str, *, inbox: Inbox, clock: Clock) -> None:
        self._rest = rest
        self._experiment = experiment
        self._inbox = inbox
        self._clock = clock
        self._stopping = threading.Event()
        self._threads = [
            threading.Thread(target=self._read, args=("reports", "report"), name="follow-reports", daemon=True),
            threading.Thread(target=self._read, args=("events", "event"), name="follow-events", daemon=True),
        ]

    def start(self) -> None:
        """Begin to read."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Put nothing on the queue any more. The threads end when their streams do: with control, at the latest."""
        self._stopping.set()

    def join(self, *, timeout_s: float) -> None:
        """Wait for the threads, after the cell has been stopped."""
        for thread in self._threads:
            thread.join(timeout=timeout_s)

    def _read(self, stream: str, kind: Kind) -> None:
        last = "0"
        while not self._stopping.is_set():
            try:
                for event in self._rest.stream(f"/v1/experiments/{self._experiment}/{stream}", after=last):
                    if self._stopping.is_set():
                        return
                    last = event.id or last
                    self._inbox.put(Happening(kind=kind, data=event.data))
            except RestError as error:
                if error.status in (401, 403, 404):
                    self._inbox.put(Happening(kind="follow-failed", data={}, message=str(error)))
                    return
            except RollstreamError as error:
                self._inbox.put(Happening(kind="follow-failed", data={}, message=str(error)))
                return
            self._stopping.wait(AGAIN_AFTER_S)
