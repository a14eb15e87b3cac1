"""Steps: the verbs of flows, each once."""

from rollstream.flow.steps.adapt import adapt
from rollstream.flow.steps.advantages import advantages
from rollstream.flow.steps.apply_gradients import apply_gradients
from rollstream.flow.steps.average_gradients import average_gradients
from rollstream.flow.steps.compute_gradients import compute_gradients
from rollstream.flow.steps.concatenate import concatenate
from rollstream.flow.steps.evaluate import evaluate
from rollstream.flow.steps.filter_lag import filter_lag
from rollstream.flow.steps.perturbations import perturbations
from rollstream.flow.steps.publish import publish
from rollstream.flow.steps.return_priorities import return_priorities
from rollstream.flow.steps.select_policies import select_policies
from rollstream.flow.steps.standardize import standardize
from rollstream.flow.steps.store_into import store_into
from rollstream.flow.steps.sync_target import sync_target
from rollstream.flow.steps.train_with_peers import train_with_peers
from rollstream.flow.steps.trajectories import trajectories
from rollstream.flow.steps.update import update

__all__ = [
    "adapt",
    "advantages",
    "apply_gradients",
    "average_gradients",
    "compute_gradients",
    "concatenate",
    "evaluate",
    "filter_lag",
    "perturbations",
    "publish",
    "return_priorities",
    "select_policies",
    "standardize",
    "store_into",
    "sync_target",
    "train_with_peers",
    "trajectories",
    "update",
]
