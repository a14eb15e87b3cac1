"""Closing code that is not ours: once, and not for longer than we are willing to wait."""

from __future__ import annotations

import threading
from collections.abc import Callable

from rollstream.envs.faults import USER_ERRORS, environment_fault
from rollstream.errors import EnvironmentFault

__all__ = ["close_within"]


def close_within(close: Callable[[], object], *, name: str, timeout_s: float) -> None:
    """Call `close` and wait for it at most `timeout_s`.

    It runs in a daemon thread, the only way to give up on code of this process; a thread that hangs does not keep the process.

    Raises:
        EnvironmentFault: it raised, or did not return in time.
    """
    errors: list[BaseException] = []

    def run() -> None:
        try:
            close()
        except USER_ERRORS as error:
            errors.append(error)

    thread = threading.Thread(target=run, name=f"close {name}", daemon=True)
    thread.start()
    thread.join(timeout_s)
    if thread.is_alive():
        raise EnvironmentFault(f"environment {name!r}: close() did not return within {timeout_s:g} s; it was abandoned")
    if errors:
        raise environment_fault(name, "close", errors[0]) from errors[0]
