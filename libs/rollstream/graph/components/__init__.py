"""Parts that policies are composed of."""

from rollstream.graph.components.activation import activate
from rollstream.graph.components.atoms import Atoms
from rollstream.graph.components.cnn import ATARI, NATURE, Cnn
from rollstream.graph.components.conv import Conv
from rollstream.graph.components.dense import Dense
from rollstream.graph.components.dueling import Dueling
from rollstream.graph.components.embedding import Embedding
from rollstream.graph.components.features import Features, is_action_mask
from rollstream.graph.components.gru import Gru
from rollstream.graph.components.impala import Impala
from rollstream.graph.components.layer_norm import LayerNorm
from rollstream.graph.components.lstm import Lstm
from rollstream.graph.components.max_pool import MaxPool
from rollstream.graph.components.mlp import Mlp
from rollstream.graph.components.noisy_dense import NoisyDense
from rollstream.graph.components.preprocessing import Preprocessing, parse_chains
from rollstream.graph.components.quantiles import Quantiles
from rollstream.graph.components.recurrent import Remembered
from rollstream.graph.components.residual import Residual
from rollstream.graph.components.sequential import Sequential
from rollstream.graph.components.torso import Torso

__all__ = [
    "ATARI",
    "NATURE",
    "Atoms",
    "Cnn",
    "Conv",
    "Dense",
    "Dueling",
    "Embedding",
    "Features",
    "Gru",
    "Impala",
    "LayerNorm",
    "Lstm",
    "MaxPool",
    "Mlp",
    "NoisyDense",
    "Preprocessing",
    "Quantiles",
    "Remembered",
    "Residual",
    "Sequential",
    "Torso",
    "activate",
    "is_action_mask",
    "parse_chains",
]
