"""Optimizers and clipping on one flat vector, as pure functions."""

from rollstream.graph.optimizers.adam import Adam
from rollstream.graph.optimizers.clipping import clip_scale
from rollstream.graph.optimizers.optimizer import Moved, Optimizer

__all__ = ["Adam", "Moved", "Optimizer", "clip_scale"]
