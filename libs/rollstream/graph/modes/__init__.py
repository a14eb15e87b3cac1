"""How a component becomes something that runs: acting and updating."""

from rollstream.graph.modes.acting import Acting, build_acting
from rollstream.graph.modes.build import Built, build
from rollstream.graph.modes.update import Update, UpdateResult, build_update

__all__ = ["Acting", "Built", "Update", "UpdateResult", "build", "build_acting", "build_update"]
