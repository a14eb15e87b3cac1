"""Heads: from features to the actions of one leaf of the action space, one class per kind of leaf."""

from rollstream.graph.policies.heads.bernoulli import BernoulliHead
from rollstream.graph.policies.heads.bounds import Bounds
from rollstream.graph.policies.heads.categorical import CategoricalHead
from rollstream.graph.policies.heads.gaussian import BoxBounds, GaussianHead
from rollstream.graph.policies.heads.head import Drawn, Head, Judged
from rollstream.graph.policies.heads.multi_categorical import MultiCategoricalHead

__all__ = [
    "BernoulliHead",
    "Bounds",
    "BoxBounds",
    "CategoricalHead",
    "Drawn",
    "GaussianHead",
    "Head",
    "Judged",
    "MultiCategoricalHead",
]
