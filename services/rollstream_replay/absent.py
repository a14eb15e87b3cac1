"""Errors of a shard that does not have what it is asked for: now, or at all."""

from __future__ import annotations

from rollstream.errors import TableError

__all__ = ["Absent", "NotServing"]


class NotServing(TableError):
    """The shard cannot answer now: it starts, stands by, or stops. Ask again."""


class Absent(TableError):
    """There is no such table or item here."""
