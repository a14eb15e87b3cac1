"""Actors of one experiment that work together find each other: who waits for a group, and which group there is.

    waiting   hash    member -> its standing (updates made) and when it last said that it is there (the server's clock)
    group     string  the newest group: generation, members in order of rank, where they meet
    running   string  expires; there as long as members of a group make rounds

The first of those that wait (highest standing, then name) forms the group as soon as as many are there as are expected, or when nobody
has come or gone for `SETTLE_S`; newcomers alone never while another group runs, which will take them in. It writes the group in one
transaction, which only the first writer of a generation wins. Members of a running group ask `someone_waits` once a round, and form a
new one with the newcomer. Nothing here waits for ever: who stops saying that it is there is left out after `STALE_S`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rollstream.clock import Clock, Deadline
from rollstream.errors import DeadlineExceeded
from rollstream.store import keys
from rollstream.store.connection import Store

__all__ = ["Meeting", "Peers"]

SETTLE_S = 1.0
"""How long nobody must have come or gone before a group with fewer members than expected is formed."""
STALE_S = 2.0
"""A member that waits says so many times a second; silent for so long, it is gone."""
RUNNING_S = 15.0
"""So long after its last round a group that nobody left in order is still waited for."""
LOOK_EVERY_S = 0.05
MEET_WITHIN_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Meeting:
    """One group.

    Attributes:
        generation: counts the groups of the experiment, from 1.
        rank: of this member; 0 has the highest standing.
        members: in order of rank.
        address: `host:port` where rank 0 is; empty for a group of one.
    """

    generation: int
    rank: int
    members: tuple[str, ...]
    address: str


class Peers:
    """One member's way to the others.

    Args:
        member: its name, unique in the experiment.
        host: under which the others reach this process.
    """

    def __init__(self, store: Store, *, experiment: str, member: str, host: str, clock: Clock) -> None:
        self.member = member
        self.host = host
        self._store = store
        self._clock = clock
        self._waiting = keys.experiment_peers_waiting(experiment)
        self._group = keys.experiment_peers_group(experiment)
        self._running = keys.experiment_peers_running(experiment)

    def someone_waits(self) -> bool:
        """Whether another member waits for a group now. Asked once a round: it also says that this group is alive."""
        return any(name != self.member for name in self._present(self._store.run("ask who waits", self._go_on)))

    def meet(self, *, standing: int, expected: int, open_at: Callable[[int], str]) -> Meeting:
        """Wait for a group with this member in it.

        Args:
            standing: updates made; who made most is rank 0, whose state all take.
            expected: as many need not wait any longer.
            open_at: called with the number of members when this one is rank 0 of several; opens a place to meet, returns its address.

        Raises:
            DeadlineExceeded: no group was formed in a minute.
        """
        last = int(self._record(self._store.run("look for peers", lambda client: client.get(self._group))).get("generation", 0))
        seen: tuple[str, ...] = ()
        settled = Deadline(self._clock, after_s=SETTLE_S)
        within = Deadline(self._clock, after_s=MEET_WITHIN_S)
        while not within.passed():
            reply = self._store.run("wait for peers", lambda client: self._say(client, standing))
            found = self._record(reply[0])
            if int(found.get("generation", 0)) > last and self.member in found["members"]:
                self.leave()  # what was just said may have come after the group was written
                return self._meeting(found)
            present, group_runs = self._present(reply[1:3]), bool(reply[3])
            order = tuple(sorted(present, key=lambda name: (-present[name], name)))
            if order != seen:
                seen, settled = order, Deadline(self._clock, after_s=SETTLE_S)
            alone = group_runs and not set(order) & set(found.get("members", ()))
            if order and order[0] == self.member and not alone and (len(order) >= expected or settled.passed()):
                made = self._form(order, after=int(found.get("generation", 0)), open_at=open_at)
                if made is not None:
                    return made
            self._clock.sleep(LOOK_EVERY_S)
        raise DeadlineExceeded(
            f"{self.member} found no peers to form a group with in {MEET_WITHIN_S:g} s (present: {', '.join(seen) or 'nobody'}); "
            "are the actors of the experiment alive, and is Redis in order?"
        )

    def leave(self) -> None:
        """This member waits no longer."""
        self._store.run("leave peers", lambda client: client.hdel(self._waiting, self.member))

    def _form(self, order: tuple[str, ...], *, after: int, open_at: Callable[[int], str]) -> Meeting | None:
        """Write the group; None when another one was written meanwhile."""
        address = open_at(len(order)) if len(order) > 1 else ""
        record = {"generation": after + 1, "members": list(order), "address": address}

        def write(client: Any) -> bool:
            with client.pipeline(transaction=True) as pipeline:
                pipeline.watch(self._group)
                now = self._record(pipeline.get(self._group))
                if now == record:
                    return True  # an earlier attempt came through; its reply was lost
                if int(now.get("generation", 0)) != after:
                    return False
                pipeline.multi()
                pipeline.set(self._group, json.dumps(record))
                pipeline.hdel(self._waiting, *order)
                return bool(pipeline.execute())

        return self._meeting(record) if self._store.run("form a group of peers", write) else None

    def _meeting(self, record: Mapping[str, Any]) -> Meeting:
        members = tuple(record["members"])
        return Meeting(
            generation=int(record["generation"]),
            rank=members.index(self.member),
            members=members,
            address=str(record["address"]),
        )

    def _go_on(self, client: Any) -> list[Any]:
        with client.pipeline(transaction=False) as pipeline:
            pipeline.set(self._running, self.member, px=int(RUNNING_S * 1_000))
            replies: list[Any] = pipeline.hgetall(self._waiting).time().execute()
            return replies[1:]

    def _say(self, client: Any, standing: int) -> list[Any]:
        seconds, microseconds = client.time()
        text = json.dumps([standing, seconds + microseconds / 1e6])
        with client.pipeline(transaction=False) as pipeline:
            pipeline.hset(self._waiting, self.member, text)
            replies: list[Any] = pipeline.get(self._group).hgetall(self._waiting).time().exists(self._running).execute()
            return replies[1:]

    @staticmethod
    def _record(reply: Any) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(reply) if reply else {}
        return found

    @staticmethod
    def _present(replies: list[Any]) -> dict[str, int]:
        """Standing of each member that is there."""
        entries, (seconds, microseconds) = replies
        now_s = seconds + microseconds / 1e6
        told = {name.decode(): json.loads(text) for name, text in entries.items()}
        return {name: int(standing) for name, (standing, said_s) in told.items() if now_s - said_s <= STALE_S}
