"""Operators: the kinds of nodes at work in the learner."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rollstream.flow.node import Kind, Node
from rollstream.flow.operators.buffers import Batching, Window
from rollstream.flow.operators.duplicate import Copy, Duplicate
from rollstream.flow.operators.flatten import Flatten
from rollstream.flow.operators.for_each import Filter, ForEach
from rollstream.flow.operators.gather import GatherAsync, GatherSync
from rollstream.flow.operators.limits import Take, Throttle
from rollstream.flow.operators.operator import Operator
from rollstream.flow.operators.prefetch import Prefetch
from rollstream.flow.operators.report import Reporting
from rollstream.flow.operators.samples import Samples
from rollstream.flow.operators.union import Union
from rollstream.flow.running import Running

__all__ = ["OPERATORS", "Operator"]

OPERATORS: Mapping[Kind, Callable[[Node, tuple[Operator, ...], Running], Operator]] = {
    "batch": Batching,
    "copy": Copy,
    "duplicate": Duplicate,
    "filter": Filter,
    "flatten": Flatten,
    "for_each": ForEach,
    "gather_async": GatherAsync,
    "gather_sync": GatherSync,
    "prefetch": Prefetch,
    "report": Reporting,
    "samples": Samples,
    "take": Take,
    "throttle": Throttle,
    "union": Union,
    "window": Window,
}
"""What each kind of node becomes; `rollouts` and steps before a gather run in the actors (`fragment`)."""
