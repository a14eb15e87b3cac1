"""Acting: the policy in an actor, the actor's side of a flow, and greedy evaluation."""

from rollstream.acting.evaluate import evaluate
from rollstream.acting.policy import SCALAR_PREFIX, Policy, Weights, WeightSource
from rollstream.acting.side import ActorProcess, RolloutSource, TableSink

__all__ = [
    "SCALAR_PREFIX",
    "ActorProcess",
    "Policy",
    "RolloutSource",
    "TableSink",
    "WeightSource",
    "Weights",
    "evaluate",
]
