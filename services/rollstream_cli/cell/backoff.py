"""How long to wait before a dead process is started again: longer each time, until one has lived for a while."""

from __future__ import annotations

__all__ = ["Backoff"]


class Backoff:
    """0.1 s, doubling up to 5 s; a process that lived `healthy_s` starts over.

    >>> backoff = Backoff()
    >>> [backoff.next_s(lived_s=0.5) for _ in range(3)], backoff.next_s(lived_s=31.0)
    ([0.1, 0.2, 0.4], 0.1)
    """

    def __init__(self, *, first_s: float = 0.1, most_s: float = 5.0, healthy_s: float = 30.0) -> None:
        self._first_s = first_s
        self._most_s = most_s
        self._healthy_s = healthy_s
        self.deaths_in_a_row = 0

    def next_s(self, *, lived_s: float) -> float:
        """Seconds to wait after the death of a process that lived `lived_s`."""
        if lived_s >= self._healthy_s:
            self.deaths_in_a_row = 0
        self.deaths_in_a_row += 1
        return min(self._most_s, self._first_s * 2.0 ** min(self.deaths_in_a_row - 1, 30))
