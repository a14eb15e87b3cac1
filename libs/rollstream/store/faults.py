"""Faults: what went wrong in the user's code, carried from the process where it happened to the person who can mend it.

The traceback travels as text, unchanged: a person reads it; nobody unpickles an exception.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

__all__ = ["Fault", "FaultKind", "FaultPlace"]

FaultKind: TypeAlias = Literal["environment", "flow", "learner"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultPlace:
    """The operator that failed, and the line of the flow (or the agent) that put it there; empty and 0 where unknown."""

    operator: str = ""
    file: str = ""
    line: int = 0

    def __str__(self) -> str:
        at = f"{self.file}:{self.line}" if self.file else ""
        return " at ".join(part for part in (self.operator, at) if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault.

    Attributes:
        kind: whose code it was: the environment's, a flow step's, or the agent's in the learner.
        actor: id of the actor in which it happened; empty in the learner.
        where: the place in the flow.
        message: type and text of the user's exception, one line.
        traceback: the user's own traceback, unchanged.
        fatal: whether the experiment must end; otherwise the actor goes on (with a restarted environment, say).
    """

    kind: FaultKind
    message: str
    actor: str = ""
    where: FaultPlace = field(default_factory=FaultPlace)
    traceback: str = ""
    fatal: bool = True
