"""Steps: the verbs of flows, each once."""

from rollstream.flow.steps.advantages import advantages
from rollstream.flow.steps.concatenate import concatenate
from rollstream.flow.steps.filter_lag import filter_lag
from rollstream.flow.steps.publish import publish
from rollstream.flow.steps.return_priorities import return_priorities
from rollstream.flow.steps.standardize import standardize
from rollstream.flow.steps.store_into import store_into
from rollstream.flow.steps.sync_target import sync_target
from rollstream.flow.steps.update import update

__all__ = [
    "advantages",
    "concatenate",
    "filter_lag",
    "publish",
    "return_priorities",
    "standardize",
    "store_into",
    "sync_target",
    "update",
]
