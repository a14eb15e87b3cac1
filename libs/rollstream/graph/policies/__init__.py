"""Policies: from observations to actions, and what a loss needs to know about them."""

from rollstream.graph.policies.action_heads import ActionHeads
from rollstream.graph.policies.actor_critic import ActorCriticPolicy
from rollstream.graph.policies.deterministic_actor_critic import DeterministicActorCritic
from rollstream.graph.policies.discrete_soft_actor_critic import DiscreteSoftActorCritic
from rollstream.graph.policies.evaluation import Evaluation
from rollstream.graph.policies.heads import BoxBounds
from rollstream.graph.policies.q_policy import Distribution, QPolicy
from rollstream.graph.policies.recurrent_q_policy import RecurrentQPolicy
from rollstream.graph.policies.soft_actor_critic import SoftActorCritic

__all__ = [
    "ActionHeads",
    "ActorCriticPolicy",
    "BoxBounds",
    "DeterministicActorCritic",
    "DiscreteSoftActorCritic",
    "Distribution",
    "Evaluation",
    "QPolicy",
    "RecurrentQPolicy",
    "SoftActorCritic",
]
