"""What the endpoints work with: made by the composition root, reached by a dependency."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from fastapi import Depends, Request

from rollstream.store import Assignments, Experiments, Members, ServerInfo, Store
from rollstream_control.api.wakeups import Wakeups
from rollstream_control.cluster import Scaling
from rollstream_control.served_policies import ServedPolicies
from rollstream_control.submission.submitter import Submitter

__all__ = ["CellParts", "Parts", "parts_of"]


@dataclass(frozen=True, kw_only=True)
class CellParts:
    """See the module. Everything here may block and is called from worker threads, except for `wakeups`."""

    store: Store
    members: Members
    assignments: Assignments
    experiments: Experiments
    submitter: Submitter
    policies: ServedPolicies
    scaling: Scaling
    wakeups: Wakeups
    version: str
    backend: Literal["local", "kubernetes", "none"]
    needs_replay: Callable[[str], bool]
    """Whether the algorithm of this name uses replay tables."""
    scheduling: Callable[[], bool]
    """Whether this control assigns actors."""
    server: Callable[[], ServerInfo | None]
    """What Redis said last about itself."""
    heartbeat_every_s: float
    """Seconds between comments on a silent event stream."""


def parts_of(request: Request) -> CellParts:
    """Dependency: the parts of the application that answers `request`."""
    parts: CellParts = request.app.state.parts
    return parts


Parts: TypeAlias = Annotated[CellParts, Depends(parts_of)]
