"""Asks replay shards over HTTP. One client with its connections serves all requests; it is made in a thread when first needed,
because importing `httpx` and loading certificates would hold the event loop for a quarter of a second.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rollstream.store import MemberRecord
from rollstream_control.api.models import ShardTable
from rollstream_control.submission.document import finite

if TYPE_CHECKING:
    import httpx

__all__ = ["ShardAnswer", "Shards"]

TIMEOUT_S = 3.0
"""A shard that is busy longer than this is shown as such, and the others are shown anyway."""
LONGEST_TEXT = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardAnswer:
    """What one shard answered: its HTTP status (0: it could not be asked), its content, and else why there is none."""

    member: MemberRecord
    status: int
    content: dict[str, Any] | None
    problem: str

    def shown(self) -> ShardTable:
        """As the API shows it."""
        return ShardTable(shard=self.member.shard or 0, member=self.member.id, info=self.content, problem=self.problem)


class Shards:
    """Use it in one event loop."""

    def __init__(self) -> None:
        self._client: httpx.AsyncClient | None = None
        self._making = asyncio.Lock()

    async def ask(
        self,
        shard: MemberRecord,
        path: str,
        *,
        method: str = "GET",
        query: Mapping[str, str | int] | None = None,
        content: Mapping[str, Any] | None = None,
    ) -> ShardAnswer:
        """What the shard answers to a request under `/v1/tables/`; a problem instead when it refuses or cannot be asked."""
        async with self._making:
            if self._client is None:
                self._client = await asyncio.to_thread(_make_client)
        url = f"{shard.url.rstrip('/')}/v1/tables/{path}"
        try:
            reply = await self._client.request(method, url, params=dict(query or {}), json=content)
            if reply.is_success:
                return ShardAnswer(member=shard, status=reply.status_code, content=finite(reply.json()), problem="")
            return ShardAnswer(member=shard, status=reply.status_code, content=None, problem=_refusal(shard, reply))
        except Exception as error:
            # shown beside the other shards; a connection that dies early raises more than the errors of the client
            where = shard.url or "no address"
            problem = f"{shard.id} at {where} could not be asked: {str(error) or type(error).__name__}"
            return ShardAnswer(member=shard, status=0, content=None, problem=problem)

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()


def _make_client() -> httpx.AsyncClient:
    import httpx

    return httpx.AsyncClient(timeout=TIMEOUT_S, follow_redirects=False, trust_env=False)


def _refusal(shard: MemberRecord, reply: httpx.Response) -> str:
    try:
        return f"{shard.id}: {reply.json()['detail']}"
    except (ValueError, KeyError, TypeError):
        return f"{shard.id} answered HTTP {reply.status_code}: {reply.text[:LONGEST_TEXT]}"
