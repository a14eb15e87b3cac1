"""Gymnasium's `AsyncVectorEnv`, one spawned process for each copy, made safe to lose.

Spawned, never forked: an actor has threads, and a fork of a process with threads deadlocks sooner or later. A worker that
raises sends text, not pickled exceptions, so its original traceback arrives whole; one that dies (signal, `os._exit`) is
reported with its exit code and, after a crash in native code, where Python stood.

    worker: user's exception -> (type name, message, traceback text) -> error queue
    parent: EnvironmentFault <- cause: exception of the original type <- cause: RemoteTraceback (the text)
"""

from __future__ import annotations

import faulthandler
import functools
import importlib
import json
import multiprocessing
import signal
import sys
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from gymnasium.vector import AsyncVectorEnv
from gymnasium.vector.async_vector_env import AsyncState, _async_worker

from rollstream.clock import Clock, Deadline
from rollstream.errors import EnvironmentFault
from rollstream.user_code import RemoteTraceback, user_traceback

__all__ = ["AsyncWorkers", "WorkerFailure", "vector_options"]

KILL_WAIT_S = 1.0
REPORT_WAIT_S = 10.0


class WorkerFailure(Exception):
    """An exception in a worker: which copy, its module and type, its message, its traceback."""

    def __init__(self, index: int, module: str, kind: str, message: str, trace: str) -> None:
        super().__init__(message)
        self.index, self.module, self.kind, self.message, self.trace = index, module, kind, message, trace

    def fault(self) -> EnvironmentFault:
        """What the actor is told."""
        return EnvironmentFault(f"worker of copy {self.index} raised {self.kind}: {self.message}")

    def original(self) -> Exception:
        """An exception of the type that the user's code raised, if that type can be imported and takes a message."""
        error: Exception = RuntimeError(f"{self.kind}: {self.message}")
        with suppress(ImportError, AttributeError, TypeError):
            kind: Any = importlib.import_module(self.module)
            for part in self.kind.split("."):
                kind = getattr(kind, part)
            candidate = kind(self.message)
            if isinstance(candidate, Exception):
                error = candidate
        error.__cause__ = RemoteTraceback(self.trace)
        return error


class _Queue(Protocol):
    def put(self, item: tuple[Any, ...]) -> None: ...


class _TextQueue:
    """Stands in for the error queue inside of a worker; passes text on, so that nothing unpicklable can get lost on the way."""

    def __init__(self, queue: _Queue) -> None:
        self._queue = queue

    def put(self, item: tuple[Any, ...]) -> None:
        index, kind, message, trace = item  # put while the exception is being handled
        error = sys.exc_info()[1]
        told = user_traceback(error) if error is not None else trace
        self._queue.put((index, kind.__module__, kind.__qualname__, str(message), told or trace))


def run_worker(directory: str, index: int, *arguments: Any) -> None:
    """Main function of a worker process; its arguments after `directory` are those of Gymnasium's own worker."""
    build, pipe, parent, memory, queue, *rest = arguments
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group: the parent decides when workers end
    with _crash_file(directory, index).open("w") as file:
        faulthandler.enable(file)
        noting = functools.partial(_built, build, directory, index)
        _async_worker(index, noting, pipe, parent, memory, _TextQueue(queue), *rest)  # type: ignore[arg-type]
        faulthandler.disable()


def _built(build: Callable[[], Any], directory: str, index: int) -> Any:
    """What `build` returns. Gymnasium's worker does not report a constructor that raises, so it is noted in a file."""
    try:
        return build()
    except Exception as error:
        note = [index, type(error).__module__, type(error).__qualname__, str(error), user_traceback(error)]
        _note_file(directory, index).write_text(json.dumps(note), encoding="utf-8")
        raise


def vector_options(directory: Path) -> dict[str, Any]:
    """Keyword arguments for `AsyncVectorEnv`: spawned workers of ours, which note crashes in `directory`."""
    return {"context": "spawn", "copy": False, "worker": functools.partial(run_worker, str(directory))}


class AsyncWorkers:
    """The calls of an `AsyncVectorEnv` (a `Simulator`), with deadlines, and faults that name the copy.

    Args:
        build: makes the vector environment from the keyword arguments of `vector_options`.
        deadline_s: how long one step or reset may take before its copies are given up.
    """

    def __init__(self, build: Callable[[dict[str, Any]], AsyncVectorEnv[Any, Any]], *, clock: Clock, deadline_s: float) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="rollstream-envs-")
        self._clock = clock
        self._deadline_s = deadline_s
        try:
            self.vector = build(vector_options(Path(self._directory.name)))
        except BaseException:
            failure = _noted_failure(Path(self._directory.name))
            self._directory.cleanup()
            if failure is not None:
                raise failure.fault() from failure.original()
            raise
        # Gymnasium's own logs each traceback on the terminal, keeps only the type, and can wait for ever
        self.vector._raise_if_errors = self._raise_first  # type: ignore[method-assign]

    def reset(self, *, seed: int | list[int] | None, options: dict[str, Any] | None) -> tuple[Any, dict[str, Any]]:
        def call() -> tuple[Any, dict[str, Any]]:
            self.vector.reset_async(seed=seed, options=options)  # type: ignore[arg-type]
            return self.vector.reset_wait(timeout=self._deadline_s)

        return self._guarded(call)  # type: ignore[no-any-return]

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        def call() -> tuple[Any, Any, Any, Any, dict[str, Any]]:
            self.vector.step_async(actions)
            return self.vector.step_wait(timeout=self._deadline_s)

        return self._guarded(call)  # type: ignore[no-any-return]

    def close(self, *, timeout_s: float) -> None:
        """Ask the workers to end, wait for them until `timeout_s`, then kill those that are left."""
        vector = self.vector
        if vector.closed:
            return
        vector.closed = True  # we end the workers ourselves: Gymnasium's own close can wait for ever
        deadline = Deadline(self._clock, after_s=timeout_s)
        if vector._state == AsyncState.DEFAULT:
            for pipe in vector.parent_pipes:
                with suppress(OSError, AttributeError):
                    pipe.send(("close", None))
        else:  # in the middle of a call that will not end
            for process in vector.processes:
                process.terminate()
        for process in vector.processes:
            process.join(deadline.remaining_s())
        stuck = [process for process in vector.processes if process.is_alive()]
        for process in stuck:
            process.kill()
        for process in stuck:
            process.join(KILL_WAIT_S)
        for pipe in vector.parent_pipes:
            if pipe is not None:
                pipe.close()
        self._directory.cleanup()

    def _guarded(self, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except WorkerFailure as failure:
            raise failure.fault() from failure.original()
        except multiprocessing.TimeoutError as error:
            raise EnvironmentFault(
                f"no answer from the workers of copies {self._silent()} within {self._deadline_s:g} s"
            ) from error
        except (EOFError, OSError) as error:
            raise EnvironmentFault(self._death()) from error

    def _raise_first(self, successes: Iterable[bool]) -> None:
        """Raise the failure of the first copy that failed, if any did."""
        failed = list(successes).count(False)
        if failed:
            self.vector._state = AsyncState.DEFAULT
            reports = [self.vector.error_queue.get(timeout=REPORT_WAIT_S) for _ in range(failed)]
            raise WorkerFailure(*min(reports))

    def _silent(self) -> list[int]:
        return [index for index, pipe in enumerate(self.vector.parent_pipes) if pipe is not None and not pipe.poll(0)]

    def _death(self) -> str:
        for process in self.vector.processes:
            process.join(KILL_WAIT_S / len(self.vector.processes))
        dead = [index for index, process in enumerate(self.vector.processes) if process.exitcode is not None]
        causes = [f"copy {index} {_exit_text(self.vector.processes[index].exitcode)}" for index in dead]
        stood = [_crash_file(self._directory.name, index).read_text().strip() for index in dead]
        where = "\n".join(text for text in stood if text)
        return f"a worker process died: {', '.join(causes) or 'its pipe closed'}" + (f"\n{where}" if where else "")


def _note_file(directory: str | Path, index: int) -> Path:
    return Path(directory) / f"failure-{index}.json"


def _noted_failure(directory: Path) -> WorkerFailure | None:
    """Why the first worker ended that could not build its copy."""
    notes = sorted(json.loads(path.read_text(encoding="utf-8")) for path in directory.glob("failure-*.json"))
    return WorkerFailure(*notes[0]) if notes else None


def _crash_file(directory: str, index: int) -> Path:
    return Path(directory) / f"crash-{index}.txt"


def _exit_text(code: int | None) -> str:
    if code is not None and code < 0:
        return f"was killed by {signal.Signals(-code).name}"
    return f"exited with code {code}"
