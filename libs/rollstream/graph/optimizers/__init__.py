"""Optimizers and clipping on one flat vector, as pure functions."""

from rollstream.graph.optimizers.adam import Adam, AdamMoments, adam_step
from rollstream.graph.optimizers.clipping import clip_scale

__all__ = ["Adam", "AdamMoments", "adam_step", "clip_scale"]
