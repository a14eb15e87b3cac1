"""A few lines that Ctrl-C must not cut in two: it is noted, and raised when they are done."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

__all__ = ["uninterrupted"]


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold SIGINT back inside the block, which must be short and wait for nobody. Only the main thread is ever interrupted."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    noted: list[FrameType | None] = []

    def note(_number: int, frame: FrameType | None) -> None:
        noted.append(frame)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before if before is not None else signal.SIG_DFL)
        if noted and callable(before):
            before(signal.SIGINT, noted[0])
