"""A bounded history of JSON records in one Redis stream: reports, events and faults of an experiment are three of them.

A reader names the id of the last entry that it has seen, so it can come back at any time and miss nothing that is still kept.
NaN and infinities become `null`: JSON has no other honest word for "there is no number" (a mean over no episodes, say).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import redis

from rollstream.store.changes import read_stream
from rollstream.store.connection import Store

__all__ = ["Journal"]

_FIELD = "json"


class Journal:
    """One stream of records.

    Args:
        what: how a person calls the records, e.g. `reports`.
        key: of the stream.
        kept_entries: about how many entries are kept; the oldest go first.
    """

    def __init__(self, store: Store, *, what: str, key: str, kept_entries: int) -> None:
        self._store = store
        self._what = what
        self._key = key
        self._kept_entries = kept_entries

    def add_to(self, pipeline: redis.client.Pipeline, record: Mapping[str, Any]) -> None:
        """Put the record on a pipeline, to be written together with what it tells about."""
        pipeline.xadd(self._key, {_FIELD: msgspec.json.encode(record)}, maxlen=self._kept_entries, approximate=True)

    def add(self, record: Mapping[str, Any]) -> None:
        """Append one record; after a lost connection it may be there twice."""

        def operation(client: redis.Redis) -> None:
            with client.pipeline(transaction=False) as pipeline:
                self.add_to(pipeline, record)
                pipeline.execute()

        self._store.run(f"add to the {self._what}", operation)

    def after(self, entry_id: str, *, limit: int) -> list[tuple[str, dict[str, Any]]]:
        """Up to `limit` records younger than the entry `entry_id` ("0": all), oldest first, each with its id."""

        def operation(client: redis.Redis) -> Any:
            return client.xrange(self._key, min=f"({entry_id}", count=limit)

        return _records(self._store.run(f"read the {self._what}", operation))

    def newest(self) -> tuple[str, dict[str, Any]] | None:
        """The last record and its id; None when there is none."""

        def operation(client: redis.Redis) -> Any:
            return client.xrevrange(self._key, count=1)

        records = _records(self._store.run(f"read the newest of the {self._what}", operation))
        return records[0] if records else None

    def wait_after(self, entry_id: str, *, limit: int, timeout_s: float) -> list[tuple[str, dict[str, Any]]]:
        """As `after`, waiting up to `timeout_s` for the first record."""
        return _records(read_stream(self._store, f"wait for {self._what}", self._key, entry_id, limit=limit, timeout_s=timeout_s))


def _records(entries: Any) -> list[tuple[str, dict[str, Any]]]:
    return [(entry_id.decode(), msgspec.json.decode(fields[_FIELD.encode()])) for entry_id, fields in entries]
