"""A user's code for end-to-end tests: environments and an algorithm that fail where they are told to."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True, slots=True, kw_only=True)
class TheirCode:
    """A folder with the user's modules, as it is installed beside ours."""

    folder: Path

    @property
    def path(self) -> str:
        """For PYTHONPATH."""
        return str(self.folder)

    def place(self, file: str, words: str) -> str:
        """`File "...", line N` of the first line of `file` that holds `words`, as a traceback writes it."""
        return f'File "{self.folder / file}", line {self.line(file, words)}'

    def line(self, file: str, words: str) -> int:
        """Number of the first line of `file` that holds `words`."""
        lines = (self.folder / file).read_text().splitlines()
        return next(number for number, line in enumerate(lines, start=1) if words in line)


@pytest.fixture(scope="session")
def their_code() -> TheirCode:
    """See the module."""
    return TheirCode(folder=Path(__file__).parent / "their_code")
