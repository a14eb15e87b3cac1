"""The cell's wake-up call: one short stream that everybody may wait on, so that nobody has to poll.

    something changed ──XADD kind,id──▶ rs:changes ──XREAD BLOCK──▶ whoever waits looks again at what concerns it

An entry says only where to look (`kind`, `id`); the truth stands elsewhere. So a lost or repeated entry does no harm, and the
stream is trimmed to about a thousand entries.
"""

from __future__ import annotations

from typing import Any

import redis

from rollstream.clock import Deadline
from rollstream.store import keys
from rollstream.store.connection import Store

__all__ = ["Changes", "add_change", "read_stream"]

_SLICE_S = 1.0
_KEPT_ENTRIES = 1_000

Entries = list[tuple[bytes, dict[bytes, bytes]]]


def add_change(pipeline: redis.client.Pipeline, kind: str, subject: str) -> None:
    """Put the wake-up on a pipeline, so that it becomes visible together with what changed."""
    pipeline.xadd(keys.changes(), {"kind": kind, "id": subject}, maxlen=_KEPT_ENTRIES, approximate=True)


def read_stream(store: Store, what: str, key: str, after: str, *, limit: int, timeout_s: float) -> Entries:
    """Entries of the stream after the id `after`, waiting up to `timeout_s` for the first; empty when none came.

    The wait is made of commands that block for a second at most, so that a closing process and a lost link are noticed.
    """
    deadline = Deadline(store.clock, after_s=timeout_s)
    while True:
        block_ms = max(1, int(1_000 * min(_SLICE_S, deadline.remaining_s())))

        def operation(client: redis.Redis, block_ms: int = block_ms) -> Any:
            return client.xread({key: after}, count=limit, block=block_ms)

        reply = store.run(what, operation)
        if reply or deadline.passed():
            return reply[0][1] if reply else []


class Changes:
    """Waiting for, and announcing, that something in the cell changed."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def announce(self, kind: str, subject: str) -> None:
        """Wake everybody who waits. `kind` is e.g. `member`, `experiment`, `assignment`; `subject` is the id of what changed."""

        def operation(client: redis.Redis) -> None:
            with client.pipeline(transaction=False) as pipeline:
                add_change(pipeline, kind, subject)
                pipeline.execute()

        self._store.run("announce a change", operation)

    def latest(self) -> str:
        """Id of the newest change. Read it, then look at the state, then `wait` from it: no change falls between."""

        def operation(client: redis.Redis) -> Any:
            return client.xrevrange(keys.changes(), count=1)

        entries: Entries = self._store.run("read the newest change", operation)
        return entries[0][0].decode() if entries else "0-0"

    def wait(self, last_id: str, *, timeout_s: float) -> str:
        """Block until something changed after `last_id`.

        Returns:
            The id of the newest change; `last_id` itself when nothing changed within `timeout_s`.
        """
        entries = read_stream(self._store, "wait for changes", keys.changes(), last_id, limit=_KEPT_ENTRIES, timeout_s=timeout_s)
        return entries[-1][0].decode() if entries else last_id
