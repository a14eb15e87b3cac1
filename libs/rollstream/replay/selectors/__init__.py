"""Selectors: which items are sampled, and which leave a full table. One file each; `make_selector` leads from settings to them."""

from rollstream.replay.selectors.arrival import ArrivalSelector
from rollstream.replay.selectors.heap import HeapSelector
from rollstream.replay.selectors.making import make_selector
from rollstream.replay.selectors.memory import slot_bytes
from rollstream.replay.selectors.mixture import MixtureSelector
from rollstream.replay.selectors.passes import PassSelector
from rollstream.replay.selectors.plugin import CustomSelector, PluginSelector, register_selector
from rollstream.replay.selectors.prioritized import PrioritizedSelector
from rollstream.replay.selectors.protocol import Selection, Selector
from rollstream.replay.selectors.recency import LagWeightedSelector, RecencySelector
from rollstream.replay.selectors.uniform import UniformSelector

__all__ = [
    "ArrivalSelector",
    "CustomSelector",
    "HeapSelector",
    "LagWeightedSelector",
    "MixtureSelector",
    "PassSelector",
    "PluginSelector",
    "PrioritizedSelector",
    "RecencySelector",
    "Selection",
    "Selector",
    "UniformSelector",
    "make_selector",
    "register_selector",
    "slot_bytes",
]
