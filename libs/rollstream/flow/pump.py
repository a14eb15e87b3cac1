"""A pump: the thread that pulls one branch of a flow. Its errors reach the puller of the flow unchanged."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

from rollstream.errors import DeadlineExceeded
from rollstream.flow.ledger import Parcel
from rollstream.flow.running import Running

__all__ = ["Pump"]

JOIN_DEADLINE_S = 60.0
"""Longer than any single wait or step should take; beyond it something is stuck, and the error says where."""


class Pump:
    """Pulls `source` in a thread of its own and delivers every parcel.

    Args:
        deliver: takes a parcel; may wait. Returns False when nobody wants more.
        end: called once when the source has ended or failed.
    """

    def __init__(
        self,
        name: str,
        source: Callable[[], Iterator[Parcel]],
        *,
        running: Running,
        deliver: Callable[[Parcel], bool],
        end: Callable[[], None],
    ) -> None:
        self._name = name
        self._source = source
        self._running = running
        self._deliver = deliver
        self._end = end
        self._gate = running.make_gate()
        self._thread = threading.Thread(target=self._pump, name=f"flow-{name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def join(self, *, deadline_s: float = JOIN_DEADLINE_S) -> None:
        """Wait for the thread to end. Stopping has been asked for before."""
        if not self._thread.is_alive():
            return
        self._thread.join(deadline_s)
        if self._thread.is_alive():
            raise DeadlineExceeded(
                f"thread {self._thread.name!r} did not end within {deadline_s:.1f} s of stopping; "
                f"a step of {self._name!r} is stuck"
            )

    def _pump(self) -> None:
        try:
            with self._running.enter_gate(self._gate):
                for parcel in self._source():
                    if not self._deliver(parcel):
                        break
        except Exception as error:
            self._running.fail(error)
        finally:
            self._end()
