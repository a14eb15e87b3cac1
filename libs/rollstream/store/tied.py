"""Runs a program that does not outlive who started it: the kernel sends it SIGTERM when the thread that started it ends, even by SIGKILL.

SIGTERM, not SIGKILL: while its disk is busy, the server keeps what it has acknowledged in its own memory for up to two seconds
(`appendfsync everysec`), and writes it out when it is asked to end.

thread ── starts ──▶ python tied.py PID /usr/bin/valkey-server server.conf ──exec──▶ the server

Only Linux has this; elsewhere a killed owner leaves its server running, and the next one is told so. Imports next to nothing.
"""

from __future__ import annotations

import os
import signal
import sys

__all__ = ["main", "tied"]

PR_SET_PDEATHSIG = 1
GONE_EXIT_CODE = 137


def tied() -> tuple[str, ...]:
    """What to put in front of a program, so that it ends with the thread of this process that starts it; nothing elsewhere."""
    return (sys.executable, "-S", __file__, str(os.getpid())) if sys.platform == "linux" else ()


def main() -> None:
    """`tied.py OWNER_PID PROGRAM [ARGUMENTS...]`."""
    import ctypes

    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != int(sys.argv[1]):
        os._exit(GONE_EXIT_CODE)  # it was gone already
    os.execv(sys.argv[2], sys.argv[2:])  # the tie survives it


if __name__ == "__main__":
    main()
