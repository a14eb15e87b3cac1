"""Operators: the kinds of nodes at work in the learner."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rollstream.flow.node import Kind, Node
from rollstream.flow.operators.batching import Batching
from rollstream.flow.operators.copy import Copy
from rollstream.flow.operators.dequeue import Dequeue
from rollstream.flow.operators.duplicate import Duplicate
from rollstream.flow.operators.enqueue import Enqueue
from rollstream.flow.operators.filter import Filter
from rollstream.flow.operators.flatten import Flatten
from rollstream.flow.operators.for_each import ForEach
from rollstream.flow.operators.gather_async import GatherAsync
from rollstream.flow.operators.gather_sync import GatherSync
from rollstream.flow.operators.mix_replay import MixReplay
from rollstream.flow.operators.operator import Operator
from rollstream.flow.operators.prefetch import Prefetch
from rollstream.flow.operators.report import Reporting
from rollstream.flow.operators.samples import Samples
from rollstream.flow.operators.take import Take
from rollstream.flow.operators.throttle import Throttle
from rollstream.flow.operators.union import Union
from rollstream.flow.operators.window import Window
from rollstream.flow.operators.zip_with_source import ZipWithSource
from rollstream.flow.running import Running

__all__ = ["OPERATORS", "Operator"]

OPERATORS: Mapping[Kind, Callable[[Node, tuple[Operator, ...], Running], Operator]] = {
    "batch": Batching,
    "copy": Copy,
    "dequeue": Dequeue,
    "duplicate": Duplicate,
    "enqueue": Enqueue,
    "filter": Filter,
    "flatten": Flatten,
    "for_each": ForEach,
    "gather_async": GatherAsync,
    "gather_sync": GatherSync,
    "mix_replay": MixReplay,
    "prefetch": Prefetch,
    "report": Reporting,
    "samples": Samples,
    "take": Take,
    "throttle": Throttle,
    "union": Union,
    "window": Window,
    "zip_with_source": ZipWithSource,
}
"""What each kind of node becomes; `rollouts` and steps before a gather run in the actors (`fragment`)."""
