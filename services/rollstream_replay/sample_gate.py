"""`POST /v1/tables/{id}/samples` in front of the web framework: the one request that comes a thousand times a second.

A framework spends more time on routing and validation than the shard on drawing a batch. So this ASGI application answers that
path itself and passes everything else on.
"""

from __future__ import annotations

import re
from typing import Any

from rollstream.errors import RollstreamError
from rollstream.replay.samples import SampleReply, decode_request, encode_reply
from rollstream_replay.problems import problem
from rollstream_replay.shard_server import ShardServer

__all__ = ["SampleGate"]

PATH = re.compile(r"/v1/tables/([a-zA-Z0-9._-]{1,128})/samples")


class SampleGate:
    """Answers requests for samples; `app` answers the rest."""

    def __init__(self, app: Any, server: ShardServer) -> None:
        self._app = app
        self._server = server

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["method"] != "POST" or (found := PATH.fullmatch(scope["path"])) is None:
            await self._app(scope, receive, send)
            return
        message = await receive()
        body = message.get("body", b"")
        while message.get("more_body"):
            message = await receive()
            body += message.get("body", b"")
        try:
            reply = await self._sample(found.group(1), body)
        except RollstreamError as error:
            await problem(error)(scope, receive, send)
            return
        headers = [(b"content-type", b"application/octet-stream"), (b"content-length", str(len(reply)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": reply})

    async def _sample(self, table_id: str, body: bytes) -> bytes:
        request = decode_request(body)
        table = self._server.table(table_id)
        items = await table.sample(
            batches=request.batches, batch_items=request.batch_items, deadline_s=request.deadline_ms / 1000
        )
        self._server.advance(table)
        return encode_reply(SampleReply(batches=len(items) // request.batch_items, batch_items=request.batch_items, items=items))
