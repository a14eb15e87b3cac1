"""A process that is asked in lines of JSON and answers in lines of JSON: how a measurement speaks with clients and with the peer.

    ask({"do": "insert", ...}) ─▶ stdin   │ process │   stdout ─▶ {"count": ..., "elapsed_s": ...}

What it says on standard error goes to a file, whose end is quoted when it dies.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rollstream.clock import Clock, Deadline
from rollstream.errors import DeadlineExceeded, RollstreamError

__all__ = ["LineProcess", "ask_all"]

_STOP_WITHIN_S = 20.0
_TAIL_LINES = 12


class LineProcess:
    """One such process.

    Args:
        name: for messages.
        log: file that gets its standard error.
        environment: variables that differ from those of this process; an empty value takes one away.
    """

    def __init__(
        self, command: Sequence[str], *, name: str, log: Path, clock: Clock, environment: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self._log = log
        self._clock = clock
        self._received = b""
        changed = {**os.environ, **(environment or {})}
        with log.open("wb") as errors:
            self._process = subprocess.Popen(
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={variable: value for variable, value in changed.items() if value},
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, *, deadline_s: float, **message: Any) -> dict[str, Any]:
        """Send one message and wait for its answer."""
        self.send(**message)
        return self.receive(deadline_s=deadline_s)

    def send(self, **message: Any) -> None:
        """Send one message; its answer is to be received before the next."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            raise self._ended() from None

    def receive(self, *, deadline_s: float) -> dict[str, Any]:
        """The next answer.

        Raises:
            DeadlineExceeded: it did not come.
            RollstreamError: the process ended, or could not do what it was asked to do.
        """
        assert self._process.stdout is not None
        deadline = Deadline(self._clock, after_s=deadline_s)
        descriptor = self._process.stdout.fileno()
        while b"\n" not in self._received:
            if deadline.passed():
                raise DeadlineExceeded(f"bench: {self.name} did not answer within {deadline_s:.0f} s; it said:\n{self.tail()}")
            ready, _, _ = select.select([descriptor], [], [], min(1.0, deadline.remaining_s()))
            if ready:
                some = os.read(descriptor, 1 << 20)
                if not some:
                    raise self._ended()
                self._received += some
        line, _, self._received = self._received.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise RollstreamError(f"bench: {self.name} could not do it: {answer['error']}")
        return answer

    def tail(self) -> str:
        """The last lines of its standard error."""
        try:
            lines = self._log.read_text(errors="replace").splitlines()
        except OSError as error:
            return f"(no log: {error})"
        return "\n".join(lines[-_TAIL_LINES:])

    def kill(self) -> None:
        """SIGKILL, and wait for the end."""
        self._process.kill()
        self._process.wait()
        self._close_pipes()

    def close(self) -> None:
        """Let it end by itself, and make it when it does not."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.close()
            self._process.wait(timeout=_STOP_WITHIN_S)
        except (OSError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        self._close_pipes()

    def _close_pipes(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except OSError:
                    pass

    def _ended(self) -> RollstreamError:
        try:
            self._process.wait(timeout=_STOP_WITHIN_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
        return RollstreamError(f"bench: {self.name} ended with status {self._process.poll()}; it said:\n{self.tail()}")


def ask_all(processes: Sequence[LineProcess], *, deadline_s: float, **message: Any) -> list[dict[str, Any]]:
    """Ask several processes at once; their answers in the same order."""
    for process in processes:
        process.send(**message)
    return [process.receive(deadline_s=deadline_s) for process in processes]
