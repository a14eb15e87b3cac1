"""Every error that Rollstream raises on purpose.

One class per *reaction*: a caller that must behave differently gets a type of its own, everything else is told apart by its
message. A message says what is wrong, the value, what is allowed and what to do (STYLE §12).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = [
    "CheckpointError",
    "ConfigError",
    "DeadlineExceeded",
    "EnvironmentFault",
    "FlowError",
    "LeaseLost",
    "NonFiniteError",
    "PeerLost",
    "Problem",
    "RollstreamError",
    "SchemaMismatch",
    "SpaceError",
    "StoreError",
    "StoreRefused",
    "StoreUnavailable",
    "TableError",
]


class RollstreamError(Exception):
    """Base of all errors raised on purpose. `exit_code` is what a process that cannot go on because of it returns."""

    exit_code: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One bad field of a setting or a spec: where it stands (`path`, dotted), and what is wrong with it (`message`)."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class ConfigError(RollstreamError):
    """A setting, spec or argument that cannot work. Never retried: a person must change it."""

    exit_code = 2

    def __init__(self, message: str, *, problems: Sequence[Problem] = ()) -> None:
        super().__init__(message)
        self.problems: tuple[Problem, ...] = tuple(problems) or (Problem(path="", message=message),)


class SpaceError(ConfigError):
    """A space that Rollstream cannot store or a policy cannot act on; the message starts with its path."""


class StoreError(RollstreamError):
    """Anything that goes wrong between a process and Redis."""

    exit_code = 3


class StoreUnavailable(StoreError):
    """Redis could not be reached before the deadline. Worth trying again later."""


class StoreRefused(StoreError):
    """Redis answered and said no: password, permissions, version, eviction policy. Trying again does not help."""

    exit_code = 4


class LeaseLost(StoreError):
    """Another process holds what this one believed to own: stop writing at once."""


class DeadlineExceeded(RollstreamError):
    """A wait ended without what it waited for; the message names both sides: who waits, and for whom."""


class PeerLost(RollstreamError):
    """A process that this one computes with is dead or late; those that are left form a new group."""


class SchemaMismatch(RollstreamError):
    """Two sides disagree about the columns of a row or the fields of a message; the message names the first difference."""


class TableError(RollstreamError):
    """A request that a replay table cannot fulfil: unknown table, bad priority, wrong key."""


class NonFiniteError(RollstreamError):
    """A NaN or an infinity where one would poison what follows: reward, observation, gradient, weight, priority."""


class EnvironmentFault(RollstreamError):
    """The user's environment raised, died or broke its own contract. Carries the user's traceback as `__cause__`."""


class FlowError(RollstreamError):
    """A step of a dataflow failed: names operator, flow file and line, and actor; `__cause__` is the user's exception."""

    def __init__(self, message: str, *, operator: str = "", file: str = "", line: int = 0, actor: str = "") -> None:
        super().__init__(message)
        self.operator = operator
        self.file = file
        self.line = line
        self.actor = actor


class CheckpointError(RollstreamError):
    """A checkpoint that cannot be written or trusted: disk full, missing file, wrong checksum."""

    exit_code = 5
