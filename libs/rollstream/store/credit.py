"""Credit: how a writer is kept from running ahead of its reader, without polling.

    reader   HSET credit[writer] = newest sequence done;  RPUSH wake:writer     (on the pipeline of its own acknowledgement)
    writer   may send while  sent - credit[writer] < bound;  otherwise BLPOP wake:writer

The hash is the truth, the list only wakes. A lost wake-up costs at most one slice of waiting (1 s), a spare one costs one read.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import redis
from redis.client import Pipeline

from rollstream.clock import Deadline
from rollstream.store.connection import Store

__all__ = ["Credit"]

_SLICE_S = 1.0
_SHORTEST_BLOCK_S = 0.01  # 0 would mean for ever
_WAKE_KEPT_S = 120


class Credit:
    """The credit of one edge or of one shard of a table; both sides use this class. Thread-safe.

    Args:
        credit_key: hash writer -> newest acknowledged sequence number.
        wake_key: the list that wakes a writer.
    """

    def __init__(self, store: Store, *, credit_key: str, wake_key: Callable[[int], str]) -> None:
        self._store = store
        self._credit_key = credit_key
        self._wake_key = wake_key
        self._granted: dict[int, int] = {}
        self._lock = threading.Lock()

    def acknowledged(self, writer: int) -> int:
        """Newest sequence number of `writer` that the reader has acknowledged; 0 before the first."""
        reply = self._store.run("read credit", lambda client: client.hget(self._credit_key, str(writer)))
        return int(reply) if reply is not None else 0

    def wait(self, writer: int, *, at_least: int, deadline_s: float) -> int:
        """Block until `acknowledged(writer) >= at_least`, or until the deadline.

        Returns:
            What is acknowledged: below `at_least` when the deadline passed.
        """
        deadline = Deadline(self._store.clock, after_s=deadline_s)
        acknowledged = self.acknowledged(writer)
        while acknowledged < at_least and not deadline.passed():
            acknowledged = self._wait_once(writer, deadline.remaining_s())
        return acknowledged

    def _wait_once(self, writer: int, remaining_s: float) -> int:
        wake = self._wake_key(writer)
        block_s = max(_SHORTEST_BLOCK_S, round(min(_SLICE_S, self._store.max_block_s, remaining_s), 3))

        def operation(client: redis.Redis) -> list[Any]:
            with client.pipeline(transaction=False) as pipeline:
                pipeline.blpop([wake], timeout=block_s)
                pipeline.hget(self._credit_key, str(writer))
                replies: list[Any] = pipeline.execute()
                return replies

        reply = self._store.run("wait for credit", operation, deadline_s=remaining_s)[1]
        return int(reply) if reply is not None else 0

    def grant(self, pipeline: Pipeline, writer: int, sequence: int) -> None:
        """Queue on `pipeline` that everything of `writer` up to `sequence` is done. Credit never goes back.

        Acknowledgements may come out of order (a reclaimed message after newer ones); the newest counts. The first grant to a
        writer reads what an earlier reader granted.
        """
        with self._lock:
            if writer not in self._granted:
                self._granted[writer] = self.acknowledged(writer)
            sequence = self._granted[writer] = max(self._granted[writer], sequence)
        wake = self._wake_key(writer)
        pipeline.hset(self._credit_key, str(writer), str(sequence))
        pipeline.rpush(wake, sequence)
        pipeline.ltrim(wake, -1, -1)
        pipeline.expire(wake, _WAKE_KEPT_S)

    def forget(self, writer: int) -> None:
        """Drop what is kept about a writer that will not come back."""
        with self._lock:
            self._granted.pop(writer, None)

        def operation(client: redis.Redis) -> None:
            client.hdel(self._credit_key, str(writer))
            client.unlink(self._wake_key(writer))

        self._store.run("drop a writer's credit", operation)
