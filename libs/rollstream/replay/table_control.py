"""A table as one thing, though it has several shards: made, changed, looked at and dropped on all of them.

describe     numbers summed over the shards, words with the shard's number before them
change       on every shard or on none: when one refuses, those before it are set back
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

import numpy as np

from rollstream.clock import Clock, Deadline
from rollstream.errors import DeadlineExceeded, RollstreamError
from rollstream.replay.keyed_items import STANDING
from rollstream.replay.samples import decode_reply
from rollstream.replay.shard_link import Link
from rollstream.replay.spec import TableSpec
from rollstream.replay.table_shards import TableShards

__all__ = ["TableControl", "summed"]

_LOG = logging.getLogger("rollstream.replay")
KNOWN_DEADLINE_S = 1.0
"""How long a question waits for a shard that is away, when there is an answer without it."""
LARGEST = ("max_priority", "newest_version", "blocked_s", "bytes_at_full", "index_bytes_at_full")
WORDS = ("writers_wait_for", "samplers_wait_for", "blocked", "redis_full")


class TableControl:
    """One table on all its shards. Thread-safe."""

    def __init__(self, shards: TableShards, *, clock: Clock) -> None:
        self._shards = shards
        self._clock = clock
        self._last_info: dict[str, float] = {}

    def create(self, spec: TableSpec, *, deadline_s: float) -> None:
        """Create the table on every shard, or make sure that it is there with the same spec."""
        document = spec.model_dump(mode="json")
        deadline = Deadline(self._clock, after_s=deadline_s)
        self._shards.take_spec(None)
        for link in self._shards.links_to(spec.shards):
            link.request_json("PUT", self._shards.path, document, deadline_s=deadline.remaining_s())
        self._shards.take_spec(spec)

    def drop(self, *, deadline_s: float, with_shared: bool) -> None:
        """Delete the table on every shard; nothing happens when there is none."""
        deadline = Deadline(self._clock, after_s=deadline_s)
        self._shards.take_spec(None)
        spec = self._shards.spec_if_there(deadline_s=deadline_s)
        query = "?with_shared=true" if with_shared else ""
        for link in self._shards.links_to(1 if spec is None else spec.shards):
            link.request_json("DELETE", self._shards.path + query, deadline_s=deadline.remaining_s())
        self._shards.take_spec(None)

    def change(self, changes: Mapping[str, Any], *, deadline_s: float) -> TableSpec:
        """Change some fields of the spec on every shard; returns the new spec."""
        deadline = Deadline(self._clock, after_s=deadline_s)
        self._shards.take_spec(None)
        before = self._shards.spec(deadline_s=deadline_s)
        done: list[Link] = []
        reply: dict[str, Any] = {}
        try:
            for link in self._shards.links(deadline_s=deadline.remaining_s()):
                reply = link.request_json("PATCH", self._shards.path, dict(changes), deadline_s=deadline.remaining_s())
                done.append(link)
        except RollstreamError:
            self._set_back(done, before, changes)
            raise
        spec = TableSpec.model_validate(reply["spec"])
        self._shards.take_spec(spec)
        return spec

    def reset(self, *, deadline_s: float) -> int:
        """Remove all items; returns how many there were."""
        replies = self._ask("DELETE", "/items", deadline_s=deadline_s)
        return sum(int(reply["deleted"]) for reply in replies)

    def describe(self, *, deadline_s: float) -> dict[str, Any]:
        """Everything that the shards say about the table, as if they were one."""
        return summed(self._ask("GET", "", deadline_s=deadline_s))

    def info(self, *, deadline_s: float | None, first_deadline_s: float) -> dict[str, float]:
        """The numbers of `describe`; of the last time, while a shard is away and no deadline is given."""
        try:
            wait_s = deadline_s or (KNOWN_DEADLINE_S if self._last_info else first_deadline_s)
            reply = self.describe(deadline_s=wait_s)
        except DeadlineExceeded:
            if deadline_s is not None or not self._last_info:
                raise
            return self._last_info
        self._last_info = {
            name: value for name, value in reply.items() if isinstance(value, int | float) and not isinstance(value, bool)
        }
        return self._last_info

    def items(self, *, order: str, limit: int, deadline_s: float) -> list[dict[str, Any]]:
        """The first `limit` items of all shards."""
        replies = self._ask("GET", f"/items?{urlencode({'order': order, 'limit': limit})}", deadline_s=deadline_s)
        found = [item for reply in replies for item in reply["items"]]
        if len(replies) > 1 and order in ("priority", "lowest"):
            found.sort(key=lambda item: item["priority"], reverse=order == "priority")
        elif len(replies) > 1:
            ages = [(place, index, item) for index, reply in enumerate(replies) for place, item in enumerate(reply["items"])]
            found = [item for _, _, item in sorted(ages, key=lambda entry: entry[:2])]  # shards know no common time
        return found[:limit]

    def can_sample(self, batch_items: int) -> bool:
        """Whether a batch need not wait for the limiter now; False while a shard is away."""
        try:
            links = self._shards.links(deadline_s=KNOWN_DEADLINE_S)
            shares = np.ones(1) if len(links) == 1 else self._shares(links)
            for link, share in zip(links, shares.tolist(), strict=True):
                part = int(np.ceil(batch_items * share))
                path = f"{self._shards.path}/samples/possible?batch_items={part}"
                if part and not link.request_json("GET", path, deadline_s=KNOWN_DEADLINE_S)["possible"]:
                    return False
            return bool(shares.any())
        except DeadlineExceeded:
            return False

    # --- inside ----------------------------------------------------------------------------------------------------------

    def _shares(self, links: Sequence[Link]) -> Any:
        path = f"{self._shards.path}/samples"
        masses = np.array(
            [decode_reply(link.request("POST", path, STANDING, deadline_s=KNOWN_DEADLINE_S)).mass for link in links]
        )
        return masses / masses.sum() if masses.sum() > 0.0 else masses

    def _ask(self, method: str, path: str, *, deadline_s: float) -> list[Any]:
        deadline = Deadline(self._clock, after_s=deadline_s)
        return [
            link.request_json(method, self._shards.path + path, deadline_s=deadline.remaining_s())
            for link in self._shards.links(deadline_s=deadline_s)
        ]

    def _set_back(self, links: Sequence[Link], before: TableSpec, changes: Mapping[str, Any]) -> None:
        fields = before.model_dump(mode="json")
        earlier = {name: fields[name] for name in changes if name in fields}
        for link in links:
            try:
                link.request_json("PATCH", self._shards.path, earlier, deadline_s=KNOWN_DEADLINE_S)
            except RollstreamError as error:
                _LOG.error("table %s: a change was refused, and one shard keeps it: %s", self._shards.table_id, error)


def summed(replies: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What the shards of a table say, as one: counts are added, ratios made anew, words get their shard's number."""
    first = dict(replies[0])
    if len(replies) == 1:
        return first
    total: dict[str, Any] = {}
    for name, value in first.items():
        values = [reply.get(name, 0) for reply in replies]
        if name in WORDS:
            total[name] = "; ".join(f"shard {reply['shard']}: {reply[name]}" for reply in replies if reply.get(name))
        elif name in LARGEST:
            total[name] = max(values)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            total[name] = sum(values)
        else:
            total[name] = value
    total["max_items"] = first["spec"]["max_items"]
    total["samples_per_insert"] = total["sampled"] / total["inserted"] if total["inserted"] else 0.0
    rows = sum(reply["bytes"] / reply["bytes_per_row"] for reply in replies if reply.get("bytes_per_row"))
    total["bytes_per_row"] = total["bytes"] / rows if rows else 0.0
    total["shard"] = [reply["shard"] for reply in replies]
    return total
