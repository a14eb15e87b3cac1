"""Components, the op tables they are written in, and the modes that run them. Importing this never imports torch."""

from rollstream.graph.declare import Component, Declared, declare
from rollstream.graph.layout import FlatLayout
from rollstream.graph.losses import DoubleQLoss, Loss, PpoLoss
from rollstream.graph.memory import Memory
from rollstream.graph.modes import Acting, Built, Update, UpdateResult, build, build_acting, build_update
from rollstream.graph.optimizers import Adam
from rollstream.graph.policies import ActorCriticPolicy, DeterministicActorCritic, QPolicy, SoftActorCritic
from rollstream.graph.report import BuildReport
from rollstream.graph.returns import gae, n_step_return

__all__ = [
    "Acting",
    "ActorCriticPolicy",
    "Adam",
    "BuildReport",
    "Built",
    "Component",
    "Declared",
    "DeterministicActorCritic",
    "DoubleQLoss",
    "FlatLayout",
    "Loss",
    "Memory",
    "PpoLoss",
    "QPolicy",
    "SoftActorCritic",
    "Update",
    "UpdateResult",
    "build",
    "build_acting",
    "build_update",
    "declare",
    "gae",
    "n_step_return",
]
