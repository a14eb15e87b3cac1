"""`POST /v1/tables/{id}/samples` on connections that carry other requests too: past the web framework, which would only cost time.

Connections that only ask for samples have a still shorter way, see `sample_protocol`.
"""

from __future__ import annotations

import re
from typing import Any

from rollstream_replay.sample_desk import SampleDesk

__all__ = ["SampleGate"]

PATH = re.compile(r"/v1/tables/([a-zA-Z0-9._-]{1,128})/samples")


class SampleGate:
    """Answers requests for samples; `app` answers the rest."""

    def __init__(self, app: Any, desk: SampleDesk) -> None:
        self._app = app
        self._desk = desk

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["method"] != "POST" or (found := PATH.fullmatch(scope["path"])) is None:
            await self._app(scope, receive, send)
            return
        message = await receive()
        body = message.get("body", b"")
        while message.get("more_body"):
            message = await receive()
            body += message.get("body", b"")
        answer = self._desk.answer(found.group(1), body)
        reply = answer if isinstance(answer, bytes) else await answer
        head, _, content = reply.partition(b"\r\n\r\n")
        lines = head.split(b"\r\n")
        headers = [tuple(part.strip() for part in line.split(b":", 1)) for line in lines[1:]]
        await send({"type": "http.response.start", "status": int(lines[0].split(b" ")[1]), "headers": headers})
        await send({"type": "http.response.body", "body": content})
        self._desk.after(found.group(1))
