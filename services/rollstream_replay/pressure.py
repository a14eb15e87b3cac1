"""Redis out of memory: what may wait waits, is told, and is tried again; the shard goes on serving what it has.

Reads, deletes of rows and the renewal of the lease go on; acknowledgements, snapshots and specs must wait until there is room.
"""

from __future__ import annotations

import logging

from rollstream.clock import Clock
from rollstream.errors import StoreUnavailable

__all__ = ["Pressure"]

_LOG = logging.getLogger("rollstream.replay")
LOGGED_AGAIN_AFTER_S = 60.0


class Pressure:
    """Whether Redis is full, as far as this shard has noticed. Thread-safe enough: one writer, readers of one field."""

    def __init__(self, clock: Clock) -> None:
        self.why = ""
        self._clock = clock
        self._since_s = 0.0
        self._logged_s = float("-inf")

    @property
    def seconds(self) -> float:
        """For how long; 0 while there is room."""
        return self._clock.monotonic_s() - self._since_s if self.why else 0.0

    def felt(self, error: StoreUnavailable) -> None:
        """A write was refused because memory is full."""
        now_s = self._clock.monotonic_s()
        if not self.why:
            self._since_s = now_s
        self.why = str(error)
        if now_s - self._logged_s > LOGGED_AGAIN_AFTER_S:
            self._logged_s = now_s
            _LOG.error("inserts are not acknowledged until Redis has room: %s", error)

    def relieved(self) -> None:
        """A write went through."""
        if self.why:
            _LOG.warning("Redis has room again after %.0f s; what had waited is written", self.seconds)
        self.why = ""
