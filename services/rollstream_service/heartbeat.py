"""Heartbeat: tells the cell every two seconds that this process is there, what it is and what it does."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Mapping

from rollstream import __version__
from rollstream.errors import StoreError
from rollstream.store import Address, Store
from rollstream.store.members import MemberRecord, Members, Role
from rollstream_service.lifecycle import Life

__all__ = ["Heartbeat", "member_record"]

EVERY_S = 2.0
"""A record lives 6 s: two beats may be lost before the cell believes that a member is gone."""


class Heartbeat:
    """A thread that announces `record()` until stopped, then takes the member off the list.

    While Redis is away the service is not ready; the thread keeps trying.

    Args:
        each_beat: called with every beat, e.g. `Waits.check`, which logs what has been waiting for long.
    """

    def __init__(
        self,
        address: Address,
        *,
        life: Life,
        record: Callable[[], MemberRecord],
        each_beat: Callable[[], object] = lambda: None,
    ) -> None:
        self._store = Store(address, clock=life.clock, deadline_s=EVERY_S, name=f"{life.member}-heartbeat")
        self._members = Members(self._store)
        self._life = life
        self._record = record
        self._each_beat = each_beat
        self._wake = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    def start(self) -> None:
        """Announce once in the caller's thread (so that a failure shows at once), then from the thread."""
        self._members.announce(self._record())
        self._life.health.condition("redis", ok=True)
        self._life.health.expect("heartbeat", within_s=60.0)
        self._wake.set()  # the first record could not say yet that Redis is there
        self._thread.start()

    def now(self) -> None:
        """Announce at once: something that others wait for has changed."""
        self._wake.set()

    def stop(self) -> None:
        """Leave the cell and join the thread."""
        self._stop.set()
        self._wake.set()
        self._thread.join(timeout=3 * EVERY_S)
        try:
            self._members.leave(self._life.member)
        except StoreError as error:
            self._life.log.warning("could not leave the cell; the record expires by itself", reason=str(error))
        self._store.close()

    def _run(self) -> None:
        while not self._stop.is_set():
            self._wake.wait(EVERY_S)
            self._wake.clear()
            if self._stop.is_set():
                return
            self._life.health.beat("heartbeat")
            self._each_beat()
            try:
                self._members.announce(self._record())
            except StoreError as error:
                self._life.health.condition("redis", ok=False, why=str(error))
            else:
                self._life.health.condition("redis", ok=True)


def member_record(
    life: Life,
    *,
    role: Role,
    url: str,
    shard: int | None = None,
    doing: str = "",
    detail: Mapping[str, float | str] | None = None,
    operators: Mapping[str, Mapping[str, float]] | None = None,
) -> MemberRecord:
    """What this process says about itself now."""
    return MemberRecord(
        id=life.member,
        role=role,
        url=url,
        version=__version__,
        pid=os.getpid(),
        host=socket.gethostname(),
        shard=shard,
        ready=life.health.ready().ok,
        doing=doing,
        rss_mb=_rss_mb(),
        detail=detail or {},
        operators=operators or {},
    )


def _rss_mb() -> float:
    import psutil

    return float(psutil.Process().memory_info().rss) / (1 << 20)
