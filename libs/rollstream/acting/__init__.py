"""Acting: the policy in an actor, the actor's side of a flow, and greedy evaluation."""

from rollstream.acting.evaluate import evaluate
from rollstream.acting.policy import SCALAR_PREFIX, ActorPlace, Policy, Weights, WeightSource
from rollstream.acting.policy_set import PolicyMember, PolicySet
from rollstream.acting.side import ActorProcess, RolloutSource, TableSink

__all__ = [
    "SCALAR_PREFIX",
    "ActorPlace",
    "ActorProcess",
    "Policy",
    "PolicyMember",
    "PolicySet",
    "RolloutSource",
    "TableSink",
    "WeightSource",
    "Weights",
    "evaluate",
]
