"""Redis of a cell: rows are written to it and read from it directly, never through a server of ours."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rollstream.clock import Clock, SystemClock
from rollstream.errors import ConfigError
from rollstream.store import Address, Store, parse_address
from rollstream_cli.cell.state import is_running, read_state
from rollstream_cli.find_cell import find_cell

__all__ = ["CellRedis", "open_redis"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CellRedis:
    """An open way to Redis."""

    store: Store
    address: Address
    clock: Clock


@contextlib.contextmanager
def open_redis(*, redis_url: str | None, directory: Path | None, runs_dir: Path, deadline_s: float = 10.0) -> Iterator[CellRedis]:
    """Redis by its URL, or that of a cell on this machine; checked, and closed after the block.

    Raises:
        ConfigError: no URL, and no cell runs here.
        StoreError: it does not answer, or refuses.
    """
    url = redis_url or _of_cell(directory, runs_dir)
    clock = SystemClock()
    address = parse_address(url, password=os.environ.get("ROLLSTREAM_REDIS_PASSWORD") or None)
    store = Store(address, clock=clock, deadline_s=deadline_s, name="rollstream-cli")
    try:
        store.check()
        yield CellRedis(store=store, address=address, clock=clock)
    finally:
        store.close()


def _of_cell(directory: Path | None, runs_dir: Path) -> str:
    if directory is None:
        found = find_cell(url=None, token=None, directory=None, runs_dir=runs_dir).directory
        assert found is not None, "a cell that is found without a URL has a directory"
        directory = found
    if not is_running(directory):
        raise ConfigError(f"no cell runs in {directory}; start one with `rollstream up`, or name its Redis with --redis-url")
    return read_state(directory).redis
