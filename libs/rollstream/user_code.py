"""The user's part of a traceback: what a person can mend, without the machinery that called it.

our frames ─▶ Gymnasium's wrappers ─▶ the user's step ─▶ what it calls
└─────────── left out ───────────┘    └──────────── told ───────────┘
"""

from __future__ import annotations

import sys
import traceback
from types import TracebackType

from rollstream.errors import FlowError, RollstreamError

__all__ = ["RemoteTraceback", "error_line", "user_traceback"]

MACHINERY = frozenset({"gymnasium", "numpy", "rollstream", "torch", *sys.stdlib_module_names})
"""Top packages that call the user's code: frames of theirs tell nothing when a frame of the user's follows."""


class RemoteTraceback(Exception):
    """The traceback of an exception in another process, as text; it is the `__cause__` of that exception's stand-in here."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


def error_line(error: BaseException) -> str:
    """`error` in one line: our own errors are sentences, others are told with their type.

    >>> error_line(KeyError("value")), error_line(RollstreamError("no weights yet")), error_line(ValueError())
    ("KeyError: 'value'", 'no weights yet', 'ValueError')
    """
    return str(error) if isinstance(error, RollstreamError) else f"{type(error).__name__}: {error}".rstrip(": ")


def user_traceback(error: BaseException) -> str:
    """The traceback of the exception that the user's code raised, from the user's first frame on, with the user's own causes.

    What we wrapped around it is left out: it repeats the message. When there is no frame of the user's, an error of ours and a
    missing module have no traceback (the message says all), and any other error has all of it: a fault of ours, to be reported.
    """
    if isinstance(error, FlowError) and error.__cause__ is not None:
        error = error.__cause__
    foreseen = isinstance(error, RollstreamError | ImportError)
    while isinstance(error, RollstreamError) and error.__cause__ is not None:
        error = error.__cause__
    if isinstance(error.__cause__, RemoteTraceback):
        return str(error.__cause__.args[0])
    told = traceback.TracebackException.from_exception(error)
    has_frames = _trim(told, error)
    return "" if foreseen and not has_frames else "".join(told.format())


def _trim(told: traceback.TracebackException, error: BaseException) -> bool:
    """Take machinery in front of the user's last frame out of `told` and of its causes; False if there is no such frame."""
    if told.__cause__ is not None and error.__cause__ is not None:
        _trim(told.__cause__, error.__cause__)
    if told.__context__ is not None and error.__context__ is not None:
        _trim(told.__context__, error.__context__)
    theirs = _are_theirs(error.__traceback__)
    if isinstance(error, SyntaxError) and True not in theirs:
        told.stack.clear()  # the error itself tells file and line
        return True
    if True not in theirs or len(theirs) != len(told.stack):
        return False
    last = len(theirs) - 1 - theirs[::-1].index(True)
    told.stack[:] = [frame for index, frame in enumerate(told.stack) if theirs[index] or index > last]
    return True


def _are_theirs(trace: TracebackType | None) -> list[bool]:
    """For each frame, outermost first, whether it is the user's."""
    packages = [str(frame.f_globals.get("__name__", "")).partition(".")[0] for frame, _ in traceback.walk_tb(trace)]
    return [package not in MACHINERY and not package.startswith("rollstream_") for package in packages]
