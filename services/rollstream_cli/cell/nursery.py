"""The first life of a cell's processes: forked from the command, which has imported what they need.

    command, one thread ── imports ── forks ─▶ control ── imports the web framework ─────────────┐
                              └ imports ── forks ─┬─▶ replay ── imports the web framework ───────┤
                                                  ├─▶ learner, actors ───────────────────────────┼─▶ gate ─▶ as `python -m rollstream_ROLE`
                                                  └─▶ itself: starts Redis, then opens the gates ┘

Nearly all that a process does before its work is to import, and most of it is the same for all of them: a second of processor time
each, which is spent once this way. A fork copies only the thread that forks, so a process with several threads is not forked: then,
and for every later life of a process, the ordinary start (`leash`) is taken. A child takes nothing along that it could use by accident:
files are closed, signals and environment are those of an ordinary start, and it ends without returning into the command's code.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import importlib
import io
import json
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn

from rollstream_cli.leash import hold, run_service
from rollstream_cli.leave import leave

__all__ = ["ForkedProcess", "Nursery"]

GATE = 3
"""The descriptor on which a forked process waits to be let go."""
M_ARENA_MAX = -8
"""Of mallopt(3): what the variable MALLOC_ARENA_MAX says, which is read too early for us."""


@dataclass(slots=True)
class ForkedProcess:
    """A child of this process that waits to be let go; to be asked like a `subprocess.Popen`."""

    pid: int
    gate: int
    returncode: int | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def let_go(self, *, environment: Mapping[str, str], log: Path) -> None:
        """It begins its work, with these variables and what it says in `log`."""
        order = json.dumps({"environment": dict(environment), "log": str(log)}).encode()
        with contextlib.suppress(BrokenPipeError), os.fdopen(self.gate, "wb") as gate:  # it may have died: `wait` tells
            gate.write(order)

    def drop(self) -> None:
        """It was made in vain, and has begun nothing."""
        self.send_signal(signal.SIGKILL)
        os.close(self.gate)
        self.wait()

    def wait(self) -> int:
        """Wait for its end; returns the exit code, or the number of a signal below zero."""
        if self.returncode is None:
            os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
            with self._lock:
                _, status = os.waitpid(self.pid, 0)
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        with self._lock:
            if self.returncode is None:
                os.kill(self.pid, number)


class Nursery:
    """Processes that have been forked and wait for a cell to take them; after the block those that nobody took are gone."""

    def __init__(self) -> None:
        self._waiting: dict[str, deque[ForkedProcess]] = {}

    def __enter__(self) -> Nursery:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for waiting in self._waiting.values():
            while waiting:
                waiting.pop().drop()

    def prepare(self, imports: Sequence[str], **processes: int) -> None:
        """Import, then fork so many processes for each role, in this order; none when this process is not fit to be forked.

        A process works on by itself once it is forked, so who has much to import that nobody else needs is prepared first.
        """
        with _without_collections():
            for module in imports:
                with contextlib.suppress(Exception):  # who needs it will say so
                    importlib.import_module(module)
            for role, count in processes.items():
                self._waiting[role] = deque(_fork(role) for _ in range(count if _has_one_thread() else 0))

    def take(self, role: str) -> ForkedProcess | None:
        """A process for the service `role`; None when there is none, or none any more."""
        try:
            return self._waiting.get(role, deque()).popleft()
        except IndexError:
            return None


@contextlib.contextmanager
def _without_collections() -> Iterator[None]:
    """What is imported stays: to look for garbage among it takes a tenth of the time, and copies pages that could be shared."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _has_one_thread() -> bool:
    """Threads of libraries count, of which Python knows nothing."""
    try:
        return len(os.listdir("/proc/self/task")) == 1  # noqa: PTH208  (pathlib makes objects of no use here)
    except OSError:
        return False  # no Linux: there forking is not safe at all


def _fork(role: str) -> ForkedProcess:
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    reader, writer = os.pipe()
    parent_pid = os.getpid()
    with _signals_held():
        pid = os.fork()
        if pid == 0:
            _live(role, gate=reader, parent_pid=parent_pid)
    os.close(reader)
    return ForkedProcess(pid=pid, gate=writer)


@contextlib.contextmanager
def _signals_held() -> Iterator[None]:
    """No signal reaches the child while it still has the command's handlers."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _live(role: str, *, gate: int, parent_pid: int) -> NoReturn:
    """The life of a forked process; whatever happens, it does not return to its parent's code."""
    code = 1
    try:
        gc.freeze()  # what the parent has dropped, too: it must not close a file that is another one here
        hold(parent_pid)
        os.setsid()
        _take_files(gate)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        _take_name(f"{sys.executable} -m rollstream_{role}")
        for part in ("settings", "wiring"):
            with contextlib.suppress(Exception):  # it comes again when there is a log to write it to
                importlib.import_module(f"rollstream_{role}.{part}")
        with os.fdopen(GATE, "rb") as opened:
            order = opened.read()
        if not order:
            os._exit(0)  # the command has ended
        gc.enable()
        _obey(json.loads(order))
        run_service(f"rollstream_{role}", ())
        code = 0
    except SystemExit as ended:
        leave(ended)
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        os._exit(code)


def _take_files(gate: int) -> None:
    """No input, no output yet, the gate; everything else belongs to the parent."""
    nothing = os.open(os.devnull, os.O_RDWR)
    held = [fcntl.fcntl(one, fcntl.F_DUPFD, GATE + 1) for one in (nothing, nothing, nothing, gate)]  # out of each other's way
    for target, descriptor in enumerate(held):
        os.dup2(descriptor, target, inheritable=target != GATE)
    os.closerange(GATE + 1, os.sysconf("SC_OPEN_MAX"))
    sys.stdin = io.TextIOWrapper(io.FileIO(0, closefd=False))
    sys.stdout = _unbuffered(1)
    sys.stderr = _unbuffered(2)


def _unbuffered(descriptor: int) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.FileIO(descriptor, "w", closefd=False), errors="backslashreplace", write_through=True)


def _obey(order: Mapping[str, Any]) -> None:
    """Take the log and the environment."""
    output = os.open(order["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    for target in (1, 2):
        os.dup2(output, target)
    os.close(output)
    os.environ.clear()
    os.environ.update(order["environment"])
    arenas = order["environment"].get("MALLOC_ARENA_MAX", "")
    if arenas.isdecimal():
        import ctypes

        with contextlib.suppress(AttributeError):  # another C library
            ctypes.CDLL(None).mallopt(M_ARENA_MAX, int(arenas))


def _take_name(command: str) -> None:
    """What `ps` shows: the words of the parent's command are overwritten in place, as far as there is room."""
    import ctypes

    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    start, end = int(fields[45]), int(fields[46])
    if 0 < start < end:
        words = command.replace(" ", "\0").encode()[: end - start - 1]
        ctypes.memmove(start, words.ljust(end - start, b"\0"), end - start)
