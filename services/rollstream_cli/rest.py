"""A cell's REST API as the command line uses it: typed errors, idempotent retries, live streams.

Requests are repeated while control is away for a moment (it may be restarted at any time); all that are sent here are safe to
repeat.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from rollstream.clock import Clock, Deadline
from rollstream.errors import ConfigError, Problem
from rollstream_cli.errors import RestError

__all__ = ["Rest", "StreamEvent"]

AGAIN_AFTER_S = 0.2
RETRIED = frozenset({502, 503, 504})


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamEvent:
    """One server-sent event."""

    id: str
    kind: str
    data: dict[str, Any]


class Rest:
    """A client of one cell."""

    def __init__(self, url: str, *, token: str = "", clock: Clock, deadline_s: float = 30.0) -> None:
        """
        Args:
            deadline_s: how long a request is repeated while the cell does not answer.
        """
        self.url = url.rstrip("/")
        self._clock = clock
        self._deadline_s = deadline_s
        if not self.url.startswith(("http://", "https://")):
            raise ConfigError(f"the URL of a cell starts with http:// or https://, got {url!r}")
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        timeout = httpx.Timeout(30.0, connect=5.0)
        self._client = httpx.Client(base_url=self.url, headers=headers, timeout=timeout, trust_env=False)

    def close(self) -> None:
        """Close its connections."""
        self._client.close()

    def get(self, path: str, **query: Any) -> Any:
        """GET as JSON."""
        return self._ask("GET", path, query=query)

    def post(self, path: str, body: Any = None, **query: Any) -> Any:
        """POST JSON. Orders are safe to repeat, and so are submissions with an `id`."""
        return self._ask("POST", path, body=body, query=query)

    def put(self, path: str, body: Any) -> Any:
        """PUT JSON."""
        return self._ask("PUT", path, body=body)

    def patch(self, path: str, body: Any) -> Any:
        """PATCH JSON."""
        return self._ask("PATCH", path, body=body)

    def ready(self) -> bool:
        """Does the cell answer, and say that it can do its job?"""
        try:
            return self._client.get("/readyz", timeout=2.0).status_code == 200
        except httpx.TransportError:
            return False

    def stream(self, path: str, *, after: str) -> Iterator[StreamEvent]:
        """Live events after id `after`; ends when the server ends it, raises `RestError` when the connection breaks."""
        headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": after} if after else {})
        query = {"after": after} if after else {}
        timeout = httpx.Timeout(60.0, connect=5.0)
        try:
            with self._client.stream("GET", path, headers=headers, params=query, timeout=timeout) as response:
                if response.status_code >= 400:
                    response.read()
                    self._refuse(response)
                yield from _events(response.iter_lines())
        except httpx.HTTPError as error:
            raise RestError(f"the stream {self.url}{path} broke: {error!r}") from error

    def _ask(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        query: Mapping[str, Any] | None = None,
    ) -> Any:
        deadline = Deadline(self._clock, after_s=self._deadline_s)
        wanted = {name: value for name, value in (query or {}).items() if value is not None}
        while True:
            try:
                response = self._client.request(method, path, json=body, params=wanted)
            except httpx.TransportError as error:
                if deadline.passed():
                    raise RestError(
                        f"no cell answers at {self.url} ({error or type(error).__name__}); `rollstream up` starts one, "
                        "--url or ROLLSTREAM_URL name another"
                    ) from error
            else:
                if response.status_code < 400:
                    return response.json() if response.content else None
                if response.status_code not in RETRIED or deadline.passed():
                    self._refuse(response)
            self._clock.sleep(AGAIN_AFTER_S)

    def _refuse(self, response: httpx.Response) -> None:
        """Raise what a problem document (RFC 9457) says."""
        try:
            problem = response.json()
        except ValueError:
            problem = {}
        if not isinstance(problem, dict):
            problem = {}
        detail = str(problem.get("detail") or f"{response.reason_phrase}: {response.text[:200]}")
        entries = problem.get("errors")
        if response.status_code == 422:
            problems = [
                Problem(path=str(entry.get("path", "")), message=str(entry.get("message", "")))
                for entry in (entries if isinstance(entries, list) else [])
                if isinstance(entry, dict)
            ]
            raise ConfigError(detail, problems=problems)
        if response.status_code in (401, 403):
            detail += "; give it with --token or ROLLSTREAM_TOKEN"
        raise RestError(
            f"{detail} ({response.request.method} {response.request.url.path}: {response.status_code})",
            status=response.status_code,
        )


def _events(lines: Iterator[str]) -> Iterator[StreamEvent]:
    """Parse `text/event-stream`; comments (heartbeats) and data that is no JSON object are passed over."""
    last_id, kind, data = "", "message", list[str]()
    for line in lines:
        if line == "":
            if data:
                try:
                    value = json.loads("\n".join(data))
                except ValueError:
                    value = None
                if isinstance(value, dict):
                    yield StreamEvent(id=last_id, kind=kind, data=value)
            kind, data = "message", []
            continue
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "id":
            last_id = value
        elif name == "event":
            kind = value
        elif name == "data":
            data.append(value)
