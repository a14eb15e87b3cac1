"""Where reports go in the run directory: JSON lines for programs, TensorBoard files for people who live there."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any, Protocol

from rollstream.clock import Clock
from rollstream.metrics.report import Report

__all__ = ["JsonLines", "Sink", "TensorBoard", "read_json_lines"]


class Sink(Protocol):
    """Takes one report after the other."""

    def write(self, report: Report) -> None:
        """Store the report so that another process can read it now."""
        ...

    def close(self) -> None:
        """Release the file."""
        ...


class JsonLines:
    """One JSON object a line, appended: a resumed run goes on in the same file."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        _end_last_line(path)
        self._file = path.open("a", encoding="utf-8")

    def write(self, report: Report) -> None:
        self._file.write(json.dumps(report.to_json(), allow_nan=False) + "\n")
        self._file.flush()

    def close(self) -> None:
        self._file.close()


def _end_last_line(path: Path) -> None:
    """A process that was killed may have left half a line; what follows must not become part of it."""
    if path.exists() and path.stat().st_size and not path.read_bytes().endswith(b"\n"):
        with path.open("a", encoding="utf-8") as file:
            file.write("\n")


def read_json_lines(path: Path) -> list[Report]:
    """The reports in a file that `JsonLines` wrote; a line that was cut off by a killed process is passed over."""
    reports = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            reports.append(Report.from_json(json.loads(line)))
        except json.JSONDecodeError:
            continue
    return reports


class TensorBoard:
    """TensorBoard event files, written without TensorFlow or torch and without a thread. Steps are environment steps."""

    def __init__(self, directory: Path, *, clock: Clock) -> None:
        from tensorboard.summary.writer.record_writer import RecordWriter

        directory.mkdir(parents=True, exist_ok=True)
        self._clock = clock
        now_s = clock.wall_s()
        self._file = (directory / f"events.out.tfevents.{int(now_s)}.{socket.gethostname()}").open("ab")
        self._records = RecordWriter(self._file)
        self._write_event(file_version="brain.Event:2")

    def write(self, report: Report) -> None:
        from tensorboard.compat.proto.summary_pb2 import Summary

        values = [Summary.Value(tag=tag, simple_value=value) for tag, value in _scalars(report).items()]
        self._write_event(step=report.env_steps, summary=Summary(value=values))

    def _write_event(self, **fields: Any) -> None:
        from tensorboard.compat.proto.event_pb2 import Event

        self._records.write(Event(wall_time=self._clock.wall_s(), **fields).SerializeToString())
        self._file.flush()

    def close(self) -> None:
        self._file.close()


def _scalars(report: Report) -> dict[str, float]:
    """Numbers of a report by TensorBoard tag."""
    named: dict[str, float | None] = {
        "return/mean": report.mean_return,
        "return/episode_steps": report.mean_episode_steps,
        "rate/env_steps_per_s": report.env_steps_per_s,
        "rate/env_steps_trained_per_s": report.env_steps_trained_per_s,
        "rate/updates_per_s": report.updates_per_s,
        "weights/lag": report.lag,
        "weights/version": report.version,
    }
    named |= {f"train/{name}": value for name, value in report.metrics.items()}
    named |= {f"wait_s/{name}": value for name, value in report.waits.items()}
    for table, numbers in report.tables.items():
        named |= {f"table/{table}/{name}": value for name, value in numbers.items()}
    return {tag: value for tag, value in named.items() if value is not None}
