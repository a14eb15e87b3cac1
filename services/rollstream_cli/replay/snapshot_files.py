"""Files of whole tables: what `dump` writes and `load` restores exactly, with keys, priorities and counters."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rollstream_cli.replay.render import size

__all__ = ["FileResult", "is_snapshot"]

MAGIC = b"RSTS"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileResult:
    """What was written or restored."""

    table_id: str
    path: str
    items: int
    bytes: int
    took_s: float

    @property
    def told(self) -> str:
        """For people."""
        rate = self.bytes / self.took_s / 1e6 if self.took_s else 0.0
        return f"{self.table_id}  {self.items:,} items, {size(self.bytes)} in {self.took_s:.2f} s ({rate:,.0f} MB/s): {self.path}"

    def to_json(self) -> dict[str, Any]:
        """As `--json` prints it."""
        return {"id": self.table_id, "path": self.path, "items": self.items, "bytes": self.bytes, "took_s": self.took_s}


def is_snapshot(path: Path) -> bool:
    """Whether the file is one of ours."""
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False
