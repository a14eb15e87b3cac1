"""Asks replay shards over HTTP. One client with its connections serves all requests; it is made in a thread when first needed,
because importing `httpx` and loading certificates would hold the event loop for a quarter of a second.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from rollstream.store import MemberRecord
from rollstream_control.api.models import ShardTable
from rollstream_control.submission.document import finite

if TYPE_CHECKING:
    import httpx

__all__ = ["Shards"]

TIMEOUT_S = 3.0
"""A shard that is busy longer than this is shown as such, and the others are shown anyway."""


class Shards:
    """Use it in one event loop."""

    def __init__(self) -> None:
        self._client: httpx.AsyncClient | None = None
        self._making = asyncio.Lock()

    async def ask(self, shard: MemberRecord, table_id: str) -> ShardTable:
        """What the shard says about its part of the table; a problem instead when it cannot be asked."""
        async with self._making:
            if self._client is None:
                self._client = await asyncio.to_thread(_make_client)
        info, problem = await _ask(self._client, shard, table_id)
        return ShardTable(shard=shard.shard or 0, member=shard.id, info=info, problem=problem)

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()


def _make_client() -> httpx.AsyncClient:
    import httpx

    return httpx.AsyncClient(timeout=TIMEOUT_S, follow_redirects=False, trust_env=False)


async def _ask(client: httpx.AsyncClient, shard: MemberRecord, table_id: str) -> tuple[dict[str, Any] | None, str]:
    try:
        reply = await client.get(f"{shard.url.rstrip('/')}/v1/tables/{table_id}")
        if reply.is_success:
            return finite(reply.json()), ""
        return None, f"{shard.id} answered HTTP {reply.status_code}: {reply.text[:500]}"
    except Exception as error:
        # shown beside the other shards; a connection that dies early raises more than the errors of the client
        return None, f"{shard.id} at {shard.url or 'no address'} could not be asked: {str(error) or type(error).__name__}"
