"""Inline mode: a whole experiment in one process and one thread, without Redis, deterministic from its seed."""

from rollstream_cli.inline.running import run

__all__ = ["run"]
