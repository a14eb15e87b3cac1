"""Compiles an update in a process of its own while this one trains on; the outcome is a file in a cache that later runs find again.

    this process: trains --poll--> trains --poll--> loads the file between two updates
    child, nice 19:      traces the update, looks for it in the cache, else compiles it there; sends where it is, and ends

A process, not a thread: compiling is minutes of Python, which would take the interpreter from the training. It imports the modules of
the loss, as any spawned process does, so a script that trains must start below `if __name__ == "__main__":`. The child ends with its
parent. Nothing here imports torch: a run that starts in NumPy has it in memory only once there is something to load.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rollstream.clock import Clock, Deadline
from rollstream.errors import ConfigError
from rollstream.graph.torch_options import TorchOptions
from rollstream.graph.update_plan import UpdatePlan

__all__ = ["Artefact", "BackgroundBuild", "cache_directory"]

PROCESS = "rollstream-compile-update"
SETTING = "ROLLSTREAM_CACHE_DIRECTORY"
LIMIT_S = 1_800.0
"""Longer than any compile that was seen, also on a machine that is busy with other things."""
POLL_EVERY_S = 0.2
NICENESS = 19
"""Of the child: it gets what nobody else wants. On a machine whose cores are all busy it takes many minutes, and training loses nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Artefact:
    """A compiled update in the cache, or (`path` None) why there is none.

    Attributes:
        row_names: what its loss says of each row.
        nodes, trace_s, compile_s, cached: as in `report.Compiled`.
        why_not: what went wrong, for people.
    """

    path: Path | None
    row_names: tuple[str, ...] = ()
    nodes: int = 0
    trace_s: float = 0.0
    compile_s: float = 0.0
    cached: bool = False
    why_not: str = ""


class BackgroundBuild:
    """See the module. Ends when it is dropped."""

    def __init__(self, plan: UpdatePlan, options: TorchOptions, *, clock: Clock) -> None:
        if multiprocessing.current_process().name == PROCESS:
            raise ConfigError(
                "the process that compiles an update runs your script again, as every spawned process does; "
                "put what starts the training below: if __name__ == '__main__':"
            )
        self._clock = clock
        self._next_poll_s = 0.0
        self._deadline = Deadline(clock, after_s=LIMIT_S)
        self._failed = ""
        spawn = multiprocessing.get_context("spawn")
        self._connection, theirs = spawn.Pipe(duplex=False)
        self._process = spawn.Process(
            target=_child, args=(plan, options, cache_directory(options), NICENESS, theirs), name=PROCESS, daemon=True
        )
        try:
            self._process.start()
        except Exception as error:  # whatever the user's classes raise when they are sent to another process
            self._failed = f"the loss cannot be sent to another process: {type(error).__name__}: {error}"
        else:
            weakref.finalize(self, _end, self._process)
        theirs.close()

    def poll(self) -> Artefact | None:
        """The outcome, once; None while there is none. Cheap: looks a few times a second at most."""
        now_s = self._clock.monotonic_s()
        if now_s < self._next_poll_s:
            return None
        self._next_poll_s = now_s + POLL_EVERY_S
        if self._failed:
            return Artefact(path=None, why_not=self._failed)
        if self._connection.poll():
            return self._received()
        if self._deadline.passed():
            _end(self._process)
            return Artefact(path=None, why_not=f"compiling took longer than {LIMIT_S:.0f} s")
        return None

    def _received(self) -> Artefact:
        try:
            found: Artefact = self._connection.recv()
        except EOFError:
            self._process.join(timeout=5.0)
            return Artefact(path=None, why_not=f"the process that compiles it ended with exit code {self._process.exitcode}")
        self._process.join(timeout=5.0)
        return found


def cache_directory(options: TorchOptions, environment: Mapping[str, str] | None = None) -> Path:
    """Where compiled updates lie: `options.cache`, else ROLLSTREAM_CACHE_DIRECTORY, else `rollstream` in the user's cache folder
    (XDG_CACHE_HOME, or ~/.cache)."""
    known = os.environ if environment is None else environment
    if options.cache is not None:
        return options.cache
    if known.get(SETTING):
        return Path(known[SETTING])
    return Path(known.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rollstream"


def _child(plan: UpdatePlan, options: TorchOptions, directory: Path, niceness: int, connection: Any) -> None:
    """The whole life of the child."""
    os.nice(niceness)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        from rollstream.graph.backends.torch.artefact import build_artefact

        found = build_artefact(plan, options, directory=directory)
    except Exception as error:
        found = Artefact(
            path=None, why_not=f"{type(error).__name__}: {error}" if not isinstance(error, ConfigError) else str(error)
        )
    connection.send(found)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None, "runs in a child"
    parent.join()
    os._exit(1)


def _end(process: Any) -> None:
    if process.is_alive():
        process.kill()
        process.join(timeout=5.0)
