"""What a run writes for people: reports as JSON lines, TensorBoard files, the learning curve.

They are not worth a run: when the disk is full, or the folder went away, the run goes on without them and says so once.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rollstream.clock import Clock
from rollstream.metrics import JsonLines, Report, Sink, TensorBoard, draw_learning_curve, read_json_lines

__all__ = ["RunFiles"]


class RunFiles:
    """The files of one run.

    Args:
        on_trouble: called once, with a sentence, when they cannot be written any more.
    """

    def __init__(self, directory: Path, *, clock: Clock, on_trouble: Callable[[str], None]) -> None:
        self._directory = directory
        self._on_trouble = on_trouble
        self._sinks: list[Sink] = []
        self._later: list[Callable[[], Sink]] = []
        try:
            self._sinks.append(JsonLines(directory / "reports.jsonl"))
            self._later.append(lambda: TensorBoard(directory / "tensorboard", clock=clock))
        except OSError as error:
            self._give_up(error)

    def write(self, report: Report) -> None:
        """Append a report. TensorBoard is imported behind the first line of the first one, which need not wait for that."""
        try:
            for sink in self._sinks:
                sink.write(report)
            while self._later:
                self._sinks.append(self._later.pop()())
                self._sinks[-1].write(report)
        except OSError as error:
            self._give_up(error)

    def draw(self, *, title: str, goal: float | None) -> str | None:
        """Draw the learning curve; returns where it lies, None when no episode has ended or it cannot be written."""
        path = self._directory / "learning_curve.png"
        try:
            reports = read_json_lines(self._directory / "reports.jsonl")
            if not any(report.mean_return is not None for report in reports):
                return None
            draw_learning_curve(reports, path, title=title, goal=goal)
        except OSError as error:
            self._give_up(error)
            return None
        return str(path)

    def close(self) -> None:
        """Release the files."""
        self._later.clear()
        sinks, self._sinks = self._sinks, []
        for sink in sinks:
            try:
                sink.close()
            except OSError as error:  # what it still held cannot be written
                self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        self._on_trouble(f"cannot write reports and pictures to {self._directory} ({error.strerror}); the run goes on without")
        self._on_trouble = _told_already
        self.close()


def _told_already(_: str) -> None:
    """Once is enough."""
