"""Errors of a flow: which operator failed, where it was written, in which process, and the user's own exception unchanged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

from rollstream.errors import FlowError, StoreError
from rollstream.flow.node import Node
from rollstream.user_code import error_line, user_traceback

__all__ = ["FaultText", "broken", "describe_error", "raise_at_operator", "require_conserved"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultText:
    """An error as text, to be shown by another process.

    Attributes:
        operator, file, line: the failing node of the flow; empty and 0 for an error outside a flow.
        actor: id of the actor it failed in; empty for the learner.
        message: one sentence that names the above and the user's error.
        traceback: the user's own traceback, from the user's frame on; empty when no code of the user's failed.
    """

    operator: str
    file: str
    line: int
    actor: str
    message: str
    traceback: str

    def to_error(self) -> FlowError:
        """The error in this process, with the other process's traceback as a note."""
        error = FlowError(self.message, operator=self.operator, file=self.file, line=self.line, actor=self.actor)
        if self.traceback:
            error.add_note(self.traceback.rstrip("\n"))
        return error


def raise_at_operator(error: Exception, node: Node, *, actor: str = "") -> NoReturn:
    """Raise what `error`, an exception of the step of `node`, means for the flow. Called while it is being handled.

    The user's exception becomes `__cause__` with its own traceback, our calling frame removed. Errors of the store keep their
    type, since the process reacts to it, and get a note with the place.
    """
    if isinstance(error, FlowError):
        raise error
    if isinstance(error, StoreError):
        error.add_note(f"in operator {node.name!r} of the flow, in {_where(actor)} ({node.place})")
        raise error
    if error.__traceback__ is not None and error.__traceback__.tb_next is not None:
        error.__traceback__ = error.__traceback__.tb_next
    raise broken(node, f"failed: {error_line(error)}", actor=actor) from error


def broken(node: Node, what: str, *, actor: str = "") -> FlowError:
    """A `FlowError` at `node`; `what` continues a sentence that names operator, process and place."""
    return FlowError(
        f"operator {node.name!r} in {_where(actor)} ({node.place}) {what}",
        operator=node.name,
        file=node.place.file,
        line=node.place.line,
        actor=actor,
    )


def require_conserved(node: Node, before: Any, after: Any, *, actor: str = "") -> None:
    """Refuse a step that changes the environment steps which an item accounts for."""
    had, has = getattr(before, "env_steps", None), getattr(after, "env_steps", None)
    if had is not None and has is not None and had != has:
        raise broken(
            node,
            f"turned an item of {had} env_steps into one of {has}; counters would not add up: "
            "keep env_steps, and use filter to drop data",
            actor=actor,
        )


def _where(actor: str) -> str:
    return f"actor {actor!r}" if actor else "the learner"


def describe_error(error: BaseException, *, where: str = "") -> FaultText:
    """`error` as text. The traceback is that of the user's exception, with its own causes.

    Args:
        where: what to name for an error that knows no place, because it happened outside of a flow's operators.
    """
    trace = user_traceback(error)
    if not isinstance(error, FlowError):
        line = f"in {where}: {error_line(error)}" if where else error_line(error)
        return FaultText(operator="", file="", line=0, actor="", message=line, traceback=trace)
    return FaultText(
        operator=error.operator,
        file=error.file,
        line=error.line,
        actor=error.actor,
        message=str(error),
        traceback=trace,
    )
