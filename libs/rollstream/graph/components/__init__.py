"""Parts that policies are composed of."""

from rollstream.graph.components.dense import Dense
from rollstream.graph.components.dueling import Dueling
from rollstream.graph.components.features import Features
from rollstream.graph.components.mlp import Mlp

__all__ = ["Dense", "Dueling", "Features", "Mlp"]
