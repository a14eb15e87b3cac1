"""The end of a process without the freeing of its objects: the system takes all memory at once, Python a third of a second."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from typing import NoReturn

__all__ = ["leave"]


def leave(ended: SystemExit) -> NoReturn:
    """What the interpreter does with a `SystemExit` at its end: waits for threads, calls exit handlers, writes what is still held."""
    vars(threading)["_shutdown"]()  # has no public name: waits for threads that are no daemons
    atexit._run_exitfuncs()
    code = 0 if ended.code is None else ended.code
    if not isinstance(code, int):
        print(code, file=sys.stderr)
        code = 1
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:  # who read it has gone
            code = code or 120
    os._exit(code)
