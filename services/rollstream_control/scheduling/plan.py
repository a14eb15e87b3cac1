"""Which actor serves which experiment: a pure function from members, demands and the plan before to the plan after.

Shares follow the weights by Webster's method (each seat goes to the largest weight / (2 seats + 1)), with one seat for everybody
first. It is *house monotone*: one actor more never takes an actor away from an experiment, so nothing moves without need.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = ["Demand", "Seat", "plan", "shares"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """An experiment that wants actors: at most `actors` of them, in proportion to `weight`."""

    experiment: str
    weight: float
    actors: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """What an actor is: number `ordinal` of `experiment`."""

    experiment: str
    ordinal: int


def shares(demands: Sequence[Demand], *, actors: int) -> dict[str, int]:
    """How many of `actors` each experiment gets; the earlier demand wins a tie.

    >>> demands = [Demand(experiment="a", weight=1.0, actors=9), Demand(experiment="b", weight=2.0, actors=9)]
    >>> shares(demands, actors=6)
    {'a': 2, 'b': 4}
    """
    seats = {demand.experiment: 0 for demand in demands}
    queue = [(float("-inf"), place) for place, demand in enumerate(demands) if demand.actors > 0]
    heapq.heapify(queue)
    for _ in range(actors):
        if not queue:
            break
        _, place = heapq.heappop(queue)
        demand = demands[place]
        seats[demand.experiment] += 1
        taken = seats[demand.experiment]
        if taken < demand.actors:
            heapq.heappush(queue, ((2 * taken + 1) / demand.weight, place))
    return seats


def plan(*, actors: Sequence[str], demands: Sequence[Demand], current: Mapping[str, Seat]) -> dict[str, Seat]:
    """The seat of every actor that gets one.

    Who has a seat keeps it, with its ordinal, while its experiment's share allows; the highest ordinals go first. A new actor
    gets the smallest ordinal that is free in its experiment.

    Args:
        actors: members that are live; the order does not matter.
        demands: experiments that want actors, in the order of their submission.
        current: seats now; actors that have left and experiments that have ended may be among them.
    """
    share = shares(demands, actors=len(actors))
    kept = _keep(set(actors), share, current)
    taken = {experiment: {seat.ordinal for seat in kept.values() if seat.experiment == experiment} for experiment in share}
    free = sorted((actor for actor in actors if actor not in kept), key=_natural, reverse=True)
    planned = dict(kept)
    for demand in demands:
        ordinals, ordinal = taken[demand.experiment], 0
        while len(ordinals) < share[demand.experiment] and free:
            while ordinal in ordinals:
                ordinal += 1
            ordinals.add(ordinal)
            planned[free.pop()] = Seat(experiment=demand.experiment, ordinal=ordinal)
    return planned


def _keep(live: set[str], share: Mapping[str, int], current: Mapping[str, Seat]) -> dict[str, Seat]:
    kept: dict[str, Seat] = {}
    left = dict(share)
    used: set[Seat] = set()
    for actor, seat in sorted(current.items(), key=lambda entry: (entry[1].ordinal, _natural(entry[0]))):
        if actor in live and left.get(seat.experiment, 0) > 0 and seat not in used:
            kept[actor] = seat
            used.add(seat)
            left[seat.experiment] -= 1
    return kept


def _natural(name: str) -> list[tuple[int, str]]:
    """Sorts `actor-2` before `actor-10`."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", name)]
