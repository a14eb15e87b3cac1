"""A bell: wakes whoever waits for something to change. To ring it costs next to nothing while nobody waits.

Who waits says so first and looks then; who changes something changes it first and looks then whether anybody has said so. One of
the two sees the other, so no wake-up is lost, and items are handed over without a lock as long as nobody has to wait for them. Who
was woken needs a while to get up: until it has looked again and found nothing, ringing once more costs nothing either.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

__all__ = ["Bell"]


class Bell:
    """What `threading.Condition` is, for many changes and few waits."""

    __slots__ = ("_changed", "_somebody_waits")

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._somebody_waits = False

    def ring(self) -> None:
        """Something has changed: those who wait look again."""
        if self._somebody_waits:
            with self._changed:
                self._somebody_waits = False
                self._changed.notify_all()

    def wait_for(self, condition: Callable[[], bool], timeout_s: float | None = None) -> bool:
        """Wait until `condition` is true; False when `timeout_s` passed first."""

        def looked() -> bool:
            self._somebody_waits = True
            return condition()

        with self._changed:
            return self._changed.wait_for(looked, timeout_s)
