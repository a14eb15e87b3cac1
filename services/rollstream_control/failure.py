"""A request that cannot be fulfilled, before it has become an HTTP reply."""

from __future__ import annotations

from rollstream.errors import RollstreamError

__all__ = ["Failure"]


class Failure(RollstreamError):
    """What the caller gets instead of a result: HTTP status, the last part of the problem's `type`, and the sentence.

    Args:
        headers: sent along, e.g. `WWW-Authenticate`.
    """

    def __init__(self, detail: str, *, status: int, kind: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.kind = kind
        self.headers = headers
