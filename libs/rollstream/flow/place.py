"""Where a node was written: the file and line of the user's flow page, found by walking out of this package."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Place", "calling_place"]

PACKAGE = str(Path(__file__).parent)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A line of source. Prints as `file:line`, which editors and terminals make clickable."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


def calling_place() -> Place:
    """The innermost caller outside this package: the line of the flow page that is being read."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
    return Place(file=frame.f_code.co_filename, line=frame.f_lineno)
