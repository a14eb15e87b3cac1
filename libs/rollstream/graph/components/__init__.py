"""Parts that policies are composed of."""

from rollstream.graph.components.activation import activate
from rollstream.graph.components.cnn import ATARI, NATURE, Cnn
from rollstream.graph.components.conv import Conv
from rollstream.graph.components.dense import Dense
from rollstream.graph.components.dueling import Dueling
from rollstream.graph.components.features import Features, is_action_mask
from rollstream.graph.components.gru import Gru
from rollstream.graph.components.impala import Impala
from rollstream.graph.components.layer_norm import LayerNorm
from rollstream.graph.components.lstm import Lstm
from rollstream.graph.components.max_pool import MaxPool
from rollstream.graph.components.mlp import Mlp
from rollstream.graph.components.recurrent import Remembered
from rollstream.graph.components.torso import Torso

__all__ = [
    "ATARI",
    "NATURE",
    "Cnn",
    "Conv",
    "Dense",
    "Dueling",
    "Features",
    "Gru",
    "Impala",
    "LayerNorm",
    "Lstm",
    "MaxPool",
    "Mlp",
    "Remembered",
    "Torso",
    "activate",
    "is_action_mask",
]
