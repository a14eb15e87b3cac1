"""Run a service module, or a program, tied to the life of the process that started it.

    supervisor ── starts ──▶ python .../leash.py SUPERVISOR_PID -m rollstream_actor
        │                    python .../leash.py SUPERVISOR_PID /usr/bin/valkey-server server.conf
        │                                   │
        └── dies, even by SIGKILL ─────────▶ the kernel kills it (Linux), or a thread that asks for its parent does (elsewhere)

So no service process outlives its cell. This module imports next to nothing: it runs in front of every service.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
import threading
from collections.abc import Sequence

__all__ = ["hold", "leashed", "main", "run_service"]

PR_SET_PDEATHSIG = 1
CHECK_EVERY_S = 1.0
GONE_EXIT_CODE = 137


def leashed() -> tuple[str, ...]:
    """What to put in front of `-m module` or of a program, so that it ends with the thread of this process that starts it."""
    return (sys.executable, __file__, str(os.getpid()))


def hold(parent_pid: int) -> None:
    """Make this process end when process `parent_pid` ends; it ends at once when that one is gone already."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    else:
        threading.Thread(target=_watch, args=(parent_pid,), name="leash", daemon=True).start()
    if os.getppid() != parent_pid:
        os._exit(GONE_EXIT_CODE)


def _watch(parent_pid: int) -> None:
    """An orphan is adopted by another process: then the parent is gone."""
    never = threading.Event()
    while os.getppid() == parent_pid:
        never.wait(CHECK_EVERY_S)
    os._exit(GONE_EXIT_CODE)


def main() -> None:
    """`leash.py SUPERVISOR_PID -m MODULE [ARGUMENTS...]` or `leash.py SUPERVISOR_PID PROGRAM [ARGUMENTS...]`."""
    hold(int(sys.argv[1]))
    if sys.argv[2] != "-m":
        os.execv(sys.argv[2], sys.argv[2:])  # the kernel's leash survives it
    run_service(sys.argv[3], sys.argv[4:])


def run_service(module: str, arguments: Sequence[str]) -> None:
    """`python -m MODULE [ARGUMENTS...]`, in this process."""
    sys.path[0] = os.getcwd()  # noqa: PTH109  (as `python -m` has it, instead of the folder of this file; pathlib is slow to load)
    sys.argv[:] = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
