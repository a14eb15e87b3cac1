"""The logs of a cell on this machine: lines of all members in order of time, and lines as they are written."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rollstream.errors import ConfigError

__all__ = ["LogFiles", "LogLine", "describe_line"]

LOOK_EVERY_S = 0.25
"""How soon a new line shows. Files cannot be waited for in a portable way."""
TAIL_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """One line of one member."""

    member: str
    text: str

    @property
    def when(self) -> str:
        """Its time stamp as text that sorts; empty when it has none."""
        return str(self.entry.get("timestamp", ""))

    @property
    def entry(self) -> dict[str, object]:
        """What it says, when it is a JSON line."""
        if not self.text.startswith("{"):
            return {}
        try:
            value = json.loads(self.text)
        except ValueError:
            return {}
        return value if isinstance(value, dict) else {}


class LogFiles:
    """The log files in `<directory>/logs`."""

    def __init__(self, directory: Path, *, member: str | None) -> None:
        """
        Args:
            member: only this one; None: all.
        """
        self._folder = directory / "logs"
        self._member = member
        self._read_bytes: dict[Path, int] = {}
        if not self._folder.is_dir():
            raise ConfigError(f"{directory} holds no logs; name the directory of a cell or a run with --dir")
        if member is not None and not (self._folder / f"{member}.log").is_file():
            known = ", ".join(sorted(path.stem for path in self._folder.glob("*.log")))
            raise ConfigError(f"there is no log of {member!r}; there are: {known or 'none'}")

    def last(self, *, lines: int) -> list[LogLine]:
        """The last `lines` lines of all chosen members; those with a time stamp in its order."""
        found: list[LogLine] = []
        for path in self._paths():
            found += self._new_lines(path, tail=True)[-lines:]
        when = ""
        keyed = []
        for line in found:  # lines without a stamp, like those of a traceback, belong to the one before
            when = line.when or when
            keyed.append((when, line))
        keyed.sort(key=lambda entry: entry[0])
        return [line for _, line in keyed][-lines:]

    def follow(self, stopping: threading.Event) -> Iterator[LogLine]:
        """Lines as they come, until `stopping`; also of members that start later."""
        while not stopping.is_set():
            for path in self._paths():
                yield from self._new_lines(path, tail=False)
            stopping.wait(LOOK_EVERY_S)

    def _paths(self) -> list[Path]:
        return sorted(self._folder.glob(f"{self._member or '*'}.log"))

    def _new_lines(self, path: Path, *, tail: bool) -> list[LogLine]:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            start = max(0, size - TAIL_BYTES) if tail else self._read_bytes.get(path, 0)
            if start > size:  # it was moved away and begun again
                start = 0
            file.seek(start)
            data = file.read()
        end = data.rfind(b"\n") + 1  # a line that is not complete waits
        self._read_bytes[path] = start + end
        texts = data[:end].decode(errors="replace").splitlines()
        return [LogLine(member=path.stem, text=text) for text in texts if text.strip()]


def describe_line(line: LogLine) -> str:
    """A line for people: time, member, what happened, and the rest as name=value."""
    entry = line.entry
    if not entry:
        return f"{line.member:<12} {line.text}"
    hidden = {"timestamp", "level", "event", "role", "member", "exception"}
    rest = " ".join(f"{name}={value}" for name, value in entry.items() if name not in hidden)
    clock = line.when[11:19]
    text = f"{clock} {line.member:<12} {entry.get('level', ''):<7} {entry.get('event', '')} {rest}".rstrip()
    trace = entry.get("exception")
    return f"{text}\n{trace}" if trace else text
