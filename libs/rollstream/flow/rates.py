"""What the nodes of a flow did in the last seconds, from their meters: items a second, and shares of the time at work and waiting.

A share is seconds per second of one process: 0.71 waited means that of ten seconds it waited seven. Actors measure their own nodes and
tell the learner with their heartbeat (`actor_work`), where those of all actors are put together (`together`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rollstream.clock import Clock
from rollstream.flow.meter import Meter

__all__ = ["NodeWork", "Rates", "actor_work", "together"]

RATE_WINDOW_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeWork:
    """What one node did: totals, and what it does now. Rates and shares are None before any time has passed.

    Attributes:
        busy_s, waited_s: seconds in its own step, and waiting, since the process began.
        busy_share, waited_share: of the last seconds, between 0 and 1; over several actors their mean.
        processes: how many processes this is the sum of.
    """

    items: int = 0
    env_steps: int = 0
    busy_s: float = 0.0
    waited_s: float = 0.0
    items_per_s: float | None = None
    env_steps_per_s: float | None = None
    busy_share: float | None = None
    waited_share: float | None = None
    processes: int = 1


@dataclass(frozen=True, slots=True)
class _Mark:
    """The counts of one meter at one moment."""

    items: int
    env_steps: int
    busy_s: float
    waited_s: float


class Rates:
    """What every node did over the last five to ten seconds."""

    def __init__(self, clock: Clock, meters: Mapping[str, Meter]) -> None:
        self._clock = clock
        self._meters = meters
        self._older = self._newer = (clock.monotonic_s(), self._marks(clock.monotonic_s()))

    def now_s(self) -> float:
        """The time by the clock that waits are measured with."""
        return self._clock.monotonic_s()

    def work(self) -> dict[str, NodeWork]:
        """What each node did, by its name."""
        now_s = self._clock.monotonic_s()
        marks = self._marks(now_s)
        since_s, before = self._older
        if now_s - self._newer[0] >= RATE_WINDOW_S:
            self._older, self._newer = self._newer, (now_s, marks)
        elapsed_s = now_s - since_s
        return {name: _between(before[name], mark, elapsed_s) for name, mark in marks.items()}

    def _marks(self, now_s: float) -> dict[str, _Mark]:
        """Counts now; a wait under way counts up to now."""
        return {
            name: _Mark(meter.items, meter.env_steps, meter.busy_s, meter.waited_s + _under_way_s(meter, now_s))
            for name, meter in self._meters.items()
        }


def actor_work(rates: Rates) -> dict[str, dict[str, float]]:
    """What an actor tells of its nodes, as plain numbers; those that are not known are left out."""
    return {
        name: {
            field: float(value)
            for field in NodeWork.__slots__
            if field != "processes" and (value := getattr(work, field)) is not None
        }
        for name, work in rates.work().items()
    }


def together(told: Sequence[Mapping[str, Mapping[str, float]]]) -> dict[str, NodeWork]:
    """What all actors told, put together by node: totals and rates add up, shares are means."""
    names = dict.fromkeys(name for actor in told for name in actor)
    return {name: _sum([actor[name] for actor in told if name in actor]) for name in names}


def _between(before: _Mark, now: _Mark, elapsed_s: float) -> NodeWork:
    totals = NodeWork(items=now.items, env_steps=now.env_steps, busy_s=now.busy_s, waited_s=now.waited_s)
    if elapsed_s <= 0:
        return totals
    return NodeWork(
        items=totals.items,
        env_steps=totals.env_steps,
        busy_s=totals.busy_s,
        waited_s=totals.waited_s,
        items_per_s=(now.items - before.items) / elapsed_s,
        env_steps_per_s=(now.env_steps - before.env_steps) / elapsed_s,
        busy_share=_share(now.busy_s - before.busy_s, elapsed_s),
        waited_share=_share(now.waited_s - before.waited_s, elapsed_s),
    )


def _sum(told: Sequence[Mapping[str, float]]) -> NodeWork:
    def total(name: str) -> float:
        return sum(one.get(name, 0.0) for one in told)

    def known(name: str, *, over: int) -> float | None:
        return total(name) / over if any(name in one for one in told) else None

    return NodeWork(
        items=int(total("items")),
        env_steps=int(total("env_steps")),
        busy_s=total("busy_s"),
        waited_s=total("waited_s"),
        items_per_s=known("items_per_s", over=1),
        env_steps_per_s=known("env_steps_per_s", over=1),
        busy_share=known("busy_share", over=len(told)),
        waited_share=known("waited_share", over=len(told)),
        processes=len(told),
    )


def _under_way_s(meter: Meter, now_s: float) -> float:
    return max(0.0, now_s - meter.waits_since_s) if meter.waits_for else 0.0


def _share(seconds: float, elapsed_s: float) -> float:
    return min(1.0, max(0.0, seconds / elapsed_s))
