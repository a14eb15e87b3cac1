"""The way from the command line to the replay shards of a cell.

    control ──GET /v1/cell──▶ members ──▶ shards that answer from here ──▶ asked directly: every table, every request
                                     └──▶ none does (a cluster)       ──▶ control asks them: tables of experiments, looking and PATCH

A shard's API has no tokens and is not meant to leave its network; control's has them. So both ways are needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import httpx

from rollstream.errors import ConfigError, TableError
from rollstream_cli.errors import RestError
from rollstream_cli.find_cell import connect
from rollstream_cli.rest import Rest

__all__ = ["CellTables", "ShardSays", "connect_tables"]

TIMEOUT_S = 10.0
CONNECT_S = 2.0
SHARD_SHIFT = 56
"""A key carries the number of its shard in its highest byte; see `rollstream.replay.item_keys`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardSays:
    """What one shard says; else the problem why it does not."""

    shard: int
    member: str
    info: dict[str, Any] | None
    problem: str = ""


class _Way(Protocol):
    def table_ids(self) -> list[str]: ...

    def ask(
        self, table_id: str, path: str, *, method: str, query: Mapping[str, Any], content: Any, shard: int | None
    ) -> list[ShardSays]: ...


class CellTables:
    """All tables of a cell, over all shards."""

    def __init__(self, way: _Way) -> None:
        self._way = way

    def table_ids(self) -> list[str]:
        """Ids of all tables: `<experiment>.<name>`."""
        return sorted(self._way.table_ids())

    def resolve(self, name: str) -> str:
        """The id that a person means: an id, a name that only one experiment has, or the beginning of an id.

        Raises:
            TableError: there is none, or more than one; the message lists them.
        """
        known = self.table_ids()
        if name in known:
            return name
        found = [table_id for table_id in known if table_id.split(".", 1)[-1] == name] or [
            table_id for table_id in known if table_id.startswith(name)
        ]
        if len(found) == 1:
            return found[0]
        if found:
            raise TableError(f"{name!r} may be any of {len(found)} tables: {', '.join(found)}; give one of these ids")
        raise TableError(f"there is no table {name!r}; there are: {', '.join(known) or 'none'}")

    def look(self, table_id: str, path: str = "", **query: Any) -> list[ShardSays]:
        """GET of all shards of the table."""
        return self._way.ask(table_id, path, method="GET", query=query, content=None, shard=None)

    def look_at_item(self, table_id: str, key: int) -> dict[str, Any]:
        """One item, from the shard in its key."""
        return self._one(self._way.ask(table_id, f"/items/{key}", method="GET", query={}, content=None, shard=key >> SHARD_SHIFT))

    def change(self, table_id: str, method: str, path: str = "", content: Any = None) -> list[ShardSays]:
        """A request that changes something, on all shards; the first refusal is raised."""
        says = self._way.ask(table_id, path, method=method, query={}, content=content, shard=None)
        self._one(says)
        return says

    def _one(self, says: Sequence[ShardSays]) -> dict[str, Any]:
        for one in says:
            if one.info is None:
                raise RestError(one.problem)
        if not says:
            raise RestError("no replay shard is live; the tables are safe in Redis and served again when one comes")
        assert says[0].info is not None, "refusals were raised"
        return says[0].info


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shard:
    number: int
    member: str
    url: str


class DirectWay:
    """Asks the shards themselves."""

    def __init__(self, shards: Sequence[_Shard], client: httpx.Client) -> None:
        self._shards = shards
        self._client = client
        self._first: dict[str, int] = {}

    def table_ids(self) -> list[str]:
        found: dict[str, int] = {}
        for shard in self._shards:
            says = self._ask(shard, "", method="GET", query={}, content=None)
            if says.info is None:
                raise RestError(says.problem)
            for table in says.info["tables"]:
                found[str(table["id"])] = found.get(str(table["id"]), 0) + 1
        self._first = found
        return list(found)

    def ask(
        self, table_id: str, path: str, *, method: str, query: Mapping[str, Any], content: Any, shard: int | None
    ) -> list[ShardSays]:
        if not self._first:
            self.table_ids()
        holders = [each for each in self._shards if each.number < self._first.get(table_id, len(self._shards))]
        if shard is not None:
            holders = [each for each in holders if each.number == shard]
            if not holders:
                raise RestError(f"no live replay shard has the number {shard}, which is in that key; is it a key of {table_id}?")
        return [self._ask(each, f"/{table_id}{path}", method=method, query=query, content=content) for each in holders]

    def _ask(self, shard: _Shard, path: str, *, method: str, query: Mapping[str, Any], content: Any) -> ShardSays:
        try:
            reply = self._client.request(method, f"{shard.url}/v1/tables{path}", params=dict(query), json=content)
        except httpx.HTTPError as error:
            problem = f"{shard.member} at {shard.url} did not answer: {str(error) or type(error).__name__}"
            return ShardSays(shard=shard.number, member=shard.member, info=None, problem=problem)
        if reply.status_code == 422:
            raise ConfigError(_refusal(shard, reply))
        if not reply.is_success:
            return ShardSays(shard=shard.number, member=shard.member, info=None, problem=_refusal(shard, reply))
        return ShardSays(shard=shard.number, member=shard.member, info=reply.json())


class ControlWay:
    """Lets control ask the shards."""

    def __init__(self, rest: Rest) -> None:
        self._rest = rest

    def table_ids(self) -> list[str]:
        experiments = self._rest.get("/v1/experiments")["experiments"]
        tables = [self._rest.get(f"/v1/experiments/{experiment['id']}/tables")["tables"] for experiment in experiments]
        return [str(table["id"]) for part in tables for table in part]

    def ask(
        self, table_id: str, path: str, *, method: str, query: Mapping[str, Any], content: Any, shard: int | None
    ) -> list[ShardSays]:
        experiment, _, name = table_id.partition(".")
        where = f"/v1/experiments/{experiment}/tables/{name}{path.replace('/priorities', '')}"
        if method == "GET":
            view = self._rest.get(where, **query)
        elif method == "PATCH":
            view = self._rest.patch(where, content)
        else:
            raise RestError(
                "the replay shards cannot be reached from here, and control only looks at tables and changes their settings; run "
                "the command where the cell runs"
            )
        return [
            ShardSays(**{name: one[name] for name in ("shard", "member", "info", "problem")})
            for one in view.get("shards", [view])
        ]


def connect_tables(*, url: str | None, token: str | None, directory: Path | None, runs_dir: Path) -> CellTables:
    """The tables of the cell that is meant.

    Raises:
        RestError: the cell does not answer, or has no replay shard.
    """
    rest = connect(url=url, token=token, directory=directory, runs_dir=runs_dir)
    members = [member for member in rest.get("/v1/cell")["members"] if member["role"] == "replay"]
    if not members:
        raise RestError(f"the cell at {rest.url} has no live replay shard; start one with `rollstream up --replay-shards 1`")
    members.sort(key=lambda member: (member["shard"] or 0, member["ready"], member["id"]))
    last = {member["shard"] or 0: member for member in members}  # of two members of one number, one that is ready
    shards = [
        _Shard(number=number, member=member["id"], url=str(member["url"]).rstrip("/")) for number, member in sorted(last.items())
    ]
    client = httpx.Client(timeout=httpx.Timeout(TIMEOUT_S, connect=CONNECT_S), trust_env=False)
    return CellTables(DirectWay(shards, client) if _answers(client, shards[0]) else ControlWay(rest))


def _answers(client: httpx.Client, shard: _Shard) -> bool:
    try:
        client.get(f"{shard.url}/healthz")
    except (httpx.HTTPError, httpx.InvalidURL):
        return False
    return True


def _refusal(shard: _Shard, reply: httpx.Response) -> str:
    try:
        return str(reply.json()["detail"])
    except (ValueError, KeyError, TypeError):
        return f"{shard.member} answered HTTP {reply.status_code}: {reply.text[:200]}"
