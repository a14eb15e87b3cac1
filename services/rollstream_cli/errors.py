"""Errors of the command line, each with the exit code that a script can tell apart."""

from __future__ import annotations

from rollstream.errors import RollstreamError

__all__ = ["CellError", "ExperimentFailed", "Interrupted", "RestError"]


class CellError(RollstreamError):
    """The processes of a cell cannot be started, or cannot go on."""


class RestError(RollstreamError):
    """A cell did not answer, or refused a request.

    Args:
        status: HTTP status; 0 when there was no answer.
    """

    def __init__(self, message: str, *, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class ExperimentFailed(RollstreamError):
    """The run failed: in the user's environment, in a step of its flow, in its loss. The message is all a person needs."""


class Interrupted(RollstreamError):
    """Ctrl-C, SIGTERM or SIGHUP; 130 is what shells use."""

    exit_code = 130
