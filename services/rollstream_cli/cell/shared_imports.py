"""What the processes of a run import, so that the command can do it once for all of them: see `nursery`.

Only what is ours, and Gymnasium: a user's own modules are for the processes that run them.
"""

from __future__ import annotations

from rollstream.algorithms import algorithm
from rollstream.config import ExperimentSpec

__all__ = ["OF_ALL_SERVICES", "shared_imports"]

OF_ALL_SERVICES = (
    "rollstream.store",
    "rollstream_service.settings",
    "rollstream_service.lifecycle",
    "rollstream_service.heartbeat",
)
"""What control has in common with learner and actors; the rest it has for itself, and imports beside them."""
OF_ALL_RUNS = (
    "rollstream_learner.settings",
    "rollstream_learner.wiring",
    "rollstream_learner.run",
    "rollstream_actor.settings",
    "rollstream_actor.wiring",
)
OF_REPLAY = ("rollstream.replay", "rollstream_actor.sink")
OWN_ALGORITHMS = "rollstream.algorithms."


def shared_imports(spec: ExperimentSpec) -> list[str]:
    """Names of modules."""
    entry = algorithm(spec.algorithm)
    pages = [f"{entry.package}.{page}" for page in ("agent", "flow")] if entry.package.startswith(OWN_ALGORITHMS) else []
    environments = [] if ":" in spec.environment.id else ["gymnasium"]
    return [*OF_ALL_RUNS, *(OF_REPLAY if entry.needs_replay else ()), *pages, *environments]
