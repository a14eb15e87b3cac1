"""Algorithms as dataflow: a flow is described by a plain function, checked, and run by actors and a learner."""

from rollstream.flow.description import Description, Edge
from rollstream.flow.fault import FaultText, describe_error
from rollstream.flow.fragment import ActorFragment, starting_environments
from rollstream.flow.handles import Actors, LearnerHandle, TableHandle
from rollstream.flow.inline import InlineEdge, InlineEdges
from rollstream.flow.place import Place
from rollstream.flow.queue import Queue
from rollstream.flow.runner import Runner
from rollstream.flow.shards import Shards
from rollstream.flow.sides import ActorSide, EdgeSource, LearnerSide, Owner, StoreResult
from rollstream.flow.step import Step
from rollstream.flow.steps import (
    advantages,
    concatenate,
    filter_lag,
    publish,
    return_priorities,
    standardize,
    store_into,
    sync_target,
    update,
)
from rollstream.flow.stream import Stream
from rollstream.flow.union import union
from rollstream.flow.view import FlowView, view_of

__all__ = [
    "ActorFragment",
    "ActorSide",
    "Actors",
    "Description",
    "Edge",
    "EdgeSource",
    "FaultText",
    "FlowView",
    "InlineEdge",
    "InlineEdges",
    "LearnerHandle",
    "LearnerSide",
    "Owner",
    "Place",
    "Queue",
    "Runner",
    "Shards",
    "Step",
    "StoreResult",
    "Stream",
    "TableHandle",
    "advantages",
    "concatenate",
    "describe_error",
    "filter_lag",
    "publish",
    "return_priorities",
    "standardize",
    "starting_environments",
    "store_into",
    "sync_target",
    "union",
    "update",
    "view_of",
]
