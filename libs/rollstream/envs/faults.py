"""Exceptions of the user's environment become `EnvironmentFault`s that say where, with the user's exception as their cause."""

from __future__ import annotations

from rollstream.errors import EnvironmentFault

__all__ = ["USER_ERRORS", "environment_fault"]

USER_ERRORS = (Exception, SystemExit)
"""What an environment may raise without taking the process down: `sys.exit()` in a simulator is one of its errors."""


def environment_fault(name: str, call: str, error: BaseException, *, environment: int | None = None) -> EnvironmentFault:
    """The fault for an exception that `call` (`reset`, `step`, ...) raised; raise it `from error`.

    A fault that is one already (a value that does not fit its space) keeps its message and gains the environment's name.
    """
    where = f"environment {name!r}" + ("" if environment is None else f" (copy {environment})")
    if isinstance(error, EnvironmentFault):
        return EnvironmentFault(f"{where} in {call}: {error}")
    return EnvironmentFault(f"{where} raised {type(error).__name__} in {call}: {error}")
