"""Losses: what is minimized, as pure functions of a policy's outputs and columns of experience."""

from rollstream.graph.losses.behavior_cloning import BehaviorCloningLoss
from rollstream.graph.losses.categorical_q import CategoricalQLoss
from rollstream.graph.losses.clipped_vtrace import ClippedVtraceLoss
from rollstream.graph.losses.conservative_soft import ConservativeSoftLoss
from rollstream.graph.losses.discrete_soft_actor_critic import DiscreteSoftActorCriticLoss
from rollstream.graph.losses.double_q import DoubleQLoss
from rollstream.graph.losses.loss import Loss, LossResult, Network
from rollstream.graph.losses.marwil import MarwilLoss
from rollstream.graph.losses.policy_gradient import PolicyGradientLoss
from rollstream.graph.losses.ppo import PpoLoss
from rollstream.graph.losses.quantile_q import QuantileQLoss
from rollstream.graph.losses.sequence_q import SequenceQLoss
from rollstream.graph.losses.soft_actor_critic import SoftActorCriticLoss
from rollstream.graph.losses.twin_delayed import TwinDelayedLoss
from rollstream.graph.losses.vtrace_actor_critic import VtraceLoss

__all__ = [
    "BehaviorCloningLoss",
    "CategoricalQLoss",
    "ClippedVtraceLoss",
    "ConservativeSoftLoss",
    "DiscreteSoftActorCriticLoss",
    "DoubleQLoss",
    "Loss",
    "LossResult",
    "MarwilLoss",
    "Network",
    "PolicyGradientLoss",
    "PpoLoss",
    "QuantileQLoss",
    "SequenceQLoss",
    "SoftActorCriticLoss",
    "TwinDelayedLoss",
    "VtraceLoss",
]
