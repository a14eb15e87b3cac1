"""What the main thread of a command has to hear of, on one queue: events of a run, signals, the end of its cell.

    GET .../events (SSE) ──▶ thread ──▶ ┐
    Ctrl-C (signal handler) ──────────▶ ├─▶ inbox ──▶ main thread: progress, orders, the end
    a process of the cell cannot work ▶ ┘

A stream that breaks, because control is being restarted, is opened again after its last event; nothing is told twice.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from rollstream.config import FINAL_PHASES
from rollstream.errors import RollstreamError
from rollstream_cli.errors import RestError

if TYPE_CHECKING:
    from rollstream_cli.rest import Rest

__all__ = ["Follower", "Happening", "Inbox"]

AGAIN_AFTER_S = 0.3
Kind: TypeAlias = Literal["event", "note", "interrupt", "cell-failed", "follow-failed"]


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
        """Add to the queue; never waits."""
        self._queue.put(happening)

    def next(self, *, timeout_s: float) -> Happening | None:
        """The next happening; None when none came in time."""
        try:
            return self._queue.get(timeout=timeout_s)
        except Empty:
            return None


class Follower:
    """A thread that reads the events of one experiment until it has ended, or `stop`."""

    def __init__(self, rest: Rest, experiment: str, *, inbox: Inbox) -> None:
        self._rest = rest
        self._experiment = experiment
        self._inbox = inbox
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._read, name="follow-events", daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def stop(self) -> None:
        """Put nothing on the queue any more. The thread ends when its stream does: with control, at the latest."""
        self._stopping.set()

    def join(self, *, timeout_s: float) -> None:
        """Wait for the thread, after the cell has been stopped."""
        self._thread.join(timeout=timeout_s)

    def _read(self) -> None:
        last = "0"
        while not self._stopping.is_set():
            try:
                for event in self._rest.stream(f"/v1/experiments/{self._experiment}/events", after=last):
                    if self._stopping.is_set():
                        return
                    last = event.id or last
                    self._inbox.put(Happening(kind="event", data=event.data))
                    if event.data.get("phase") in FINAL_PHASES:
                        return
            except RestError as error:
                if error.status in (401, 403, 404):
                    self._inbox.put(Happening(kind="follow-failed", data={}, message=str(error)))
                    return
            except RollstreamError as error:
                self._inbox.put(Happening(kind="follow-failed", data={}, message=str(error)))
                return
            self._stopping.wait(AGAIN_AFTER_S)
