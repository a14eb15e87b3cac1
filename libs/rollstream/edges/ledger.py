"""What a reader knows about its writers: which messages came, which are in use, which are missing. Pure bookkeeping, no Redis.

    arrived ──▶ NEW       take it, and settle it when it has been used
            ──▶ HELD      this very entry is in use: delivered again after a lost reply, leave it alone
            ──▶ COPY      the writer sent it twice (it retried) and the first one is in use: delete both when that is settled
            ──▶ REPEATED  likewise, and the first one has been used: delete this one

A stream keeps the order of each writer, so a number that is skipped was lost, or is with a reader that died; it is remembered,
and taken if it comes later. `settled_up_to` is what may be granted as credit: everything up to there is used, or missing.
"""

from __future__ import annotations

import enum
from collections.abc import Set
from dataclasses import dataclass, field

__all__ = ["Arrival", "Ledger"]

_REMEMBERED_GAP = 1_000
_REMEMBERED_WRITERS = 1_000


class Arrival(enum.Enum):
    """What to do with a message that arrived; see the module's table."""

    NEW = enum.auto()
    HELD = enum.auto()
    COPY = enum.auto()
    REPEATED = enum.auto()


@dataclass(slots=True, kw_only=True)
class _Writer:
    actor: str = ""
    heard_s: float | None = None
    """When a usable message of it came last; None: never, so it may be made of damaged bytes."""
    highest: int
    """Highest sequence number that arrived."""
    missing: set[int] = field(default_factory=set)
    """Lower ones that did not."""
    held: dict[int, list[bytes]] = field(default_factory=dict)
    """Those that arrived and are not settled, each with its entries in the stream: more than one when it was sent twice."""
    gone: bool = False


class Ledger:
    """Bookkeeping of one edge's reader. Not thread-safe."""

    def __init__(self) -> None:
        self._writers: dict[int, _Writer] = {}

    def knows(self, writer: int) -> bool:
        return writer in self._writers

    def meet(self, writer: int, *, acknowledged: int, first: int) -> None:
        """A writer is heard of for the first time.

        Args:
            acknowledged: what an earlier reader acknowledged to it; 0 when that is not known.
            first: sequence number of its message: without an acknowledgement the count begins there.
        """
        self._writers[writer] = _Writer(highest=acknowledged or first - 1)

    def arrived(self, entry_id: bytes, writer: int, sequence: int, *, actor: str, now_s: float) -> Arrival:
        """Judge a message of a writer that was met."""
        state = self._writers[writer]
        state.actor, state.heard_s, state.gone = actor, now_s, False
        copies = state.held.get(sequence)
        if copies is not None:
            if entry_id in copies:
                return Arrival.HELD
            copies.append(entry_id)
            return Arrival.COPY
        if sequence > state.highest:
            state.missing.update(range(max(state.highest + 1, sequence - _REMEMBERED_GAP), sequence))
            state.highest = sequence
        elif sequence in state.missing:
            state.missing.discard(sequence)
        else:
            return Arrival.REPEATED
        state.held[sequence] = [entry_id]
        return Arrival.NEW

    def skipped(self, writer: int, sequence: int) -> None:
        """A message of a writer that was met cannot be used: it counts as settled."""
        state = self._writers[writer]
        state.highest = max(state.highest, sequence)
        state.missing.discard(sequence)

    def entries(self, writer: int, sequence: int) -> list[bytes]:
        """Where a held message lies in the stream; empty when it is not held."""
        state = self._writers.get(writer)
        return list(state.held.get(sequence, ())) if state is not None else []

    def settled_up_to(self, writer: int, *, besides: Set[int] = frozenset()) -> int | None:
        """Up to which number nothing of the writer is held, `besides` not counted; None: grant it nothing, it is gone."""
        state = self._writers.get(writer)
        if state is None:
            return max(besides, default=None)
        if state.gone:
            return None
        held = state.held.keys() - besides
        return min(held) - 1 if held else state.highest

    def settle(self, writer: int, sequence: int) -> None:
        """A held message has been used."""
        state = self._writers.get(writer)
        if state is not None:
            state.held.pop(sequence, None)

    def drop(self, writer: int) -> None:
        """The writer is gone. What came of it can still be used; a late message of it brings it back."""
        state = self._writers.get(writer)
        if state is None:
            return
        state.gone = True
        forgettable = [number for number, known in self._writers.items() if known.gone and not known.held]
        for number in forgettable[:-_REMEMBERED_WRITERS]:
            del self._writers[number]

    @property
    def held(self) -> int:
        """Messages in use."""
        return sum(len(state.held) for state in self._writers.values())

    def missing(self) -> int:
        """Numbers that were skipped and have not come since."""
        return sum(len(state.missing) for state in self._writers.values())

    def live(self) -> dict[int, str]:
        """Actor of each writer that was heard of and not dropped."""
        return {number: state.actor for number, state in self._writers.items() if state.heard_s is not None and not state.gone}

    def heard_s(self) -> dict[str, float]:
        """When each live actor was last heard of, by the clock that `arrived` was told."""
        heard: dict[str, float] = {}
        for state in self._writers.values():
            if state.heard_s is not None and not state.gone:
                heard[state.actor] = max(state.heard_s, heard.get(state.actor, state.heard_s))
        return heard
