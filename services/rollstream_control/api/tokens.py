"""Who may do what: bearer tokens with two roles. A viewer may look, an operator may also change things."""

from __future__ import annotations

import hashlib
import hmac
from typing import Annotated, Literal, TypeAlias

from fastapi import Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from rollstream_control.failure import Failure

__all__ = ["Role", "Tokens", "require_operator", "require_viewer"]

Role: TypeAlias = Literal["viewer", "operator"]

BEARER = HTTPBearer(auto_error=False, description="ROLLSTREAM_OPERATOR_TOKEN or ROLLSTREAM_VIEWER_TOKEN")


class Tokens:
    """Knows digests of the tokens only, and compares them in constant time."""

    def __init__(self, *, operator: str | None, viewer: str | None) -> None:
        self._operator = _digest(operator)
        self._viewer = _digest(viewer)

    @property
    def anonymous(self) -> bool:
        """True when there is no token at all: everybody who can reach control is an operator."""
        return self._operator is None

    def role(self, token: str | None) -> Role | None:
        """The role that `token` gives, or None when it is missing or wrong."""
        if self._operator is None:
            return "operator"
        given = _digest(token or "") or b""
        is_operator = hmac.compare_digest(given, self._operator)
        is_viewer = self._viewer is not None and hmac.compare_digest(given, self._viewer)
        if is_operator:
            return "operator"
        return "viewer" if is_viewer else None


def _digest(token: str | None) -> bytes | None:
    return None if token is None else hashlib.sha256(token.encode()).digest()


async def require_viewer(request: Request, credentials: Annotated[HTTPAuthorizationCredentials | None, Security(BEARER)]) -> Role:
    """Dependency of endpoints that only look."""
    tokens: Tokens = request.app.state.tokens
    role = tokens.role(credentials.credentials if credentials else None)
    if role is None:
        raise Failure(
            "this needs a valid token: send the header `Authorization: Bearer <token>`",
            status=401,
            kind="unauthorized",
            headers={"WWW-Authenticate": 'Bearer realm="rollstream"'},
        )
    return role


async def require_operator(
    request: Request, credentials: Annotated[HTTPAuthorizationCredentials | None, Security(BEARER)]
) -> Role:
    """Dependency of endpoints that change things. Without tokens, a web page of another origin is turned away."""
    role = await require_viewer(request, credentials)
    if role != "operator":
        raise Failure("a viewer's token cannot change things: use the operator's", status=403, kind="forbidden")
    tokens: Tokens = request.app.state.tokens
    origin = request.headers.get("origin")
    if tokens.anonymous and origin is not None and origin.split("://")[-1] != request.headers.get("host"):
        raise Failure(
            f"a page of {origin} may not change things here without a token: set ROLLSTREAM_OPERATOR_TOKEN",
            status=403,
            kind="forbidden",
        )
    return role
