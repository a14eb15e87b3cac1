"""Roles by bearer token."""

from __future__ import annotations

from rollstream_control.api.tokens import Tokens


def test_each_token_gives_its_role() -> None:
    tokens = Tokens(operator="operate-it", viewer="look-at-it")
    assert [tokens.role(token) for token in ("operate-it", "look-at-it", "guess", "", None)] == [
        "operator",
        "viewer",
        None,
        None,
        None,
    ]


def test_without_tokens_everybody_is_an_operator() -> None:
    tokens = Tokens(operator=None, viewer=None)
    assert tokens.anonymous
    assert tokens.role(None) == tokens.role("whatever") == "operator"


def test_tokens_are_kept_as_digests_only() -> None:
    tokens = Tokens(operator="operate-it", viewer="look-at-it")
    assert "operate-it" not in str(vars(tokens))
