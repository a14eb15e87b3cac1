"""Optimizers, schedules and clipping on one flat vector, as pure functions."""

from rollstream.graph.optimizers.adam import Adam
from rollstream.graph.optimizers.adamw import AdamW
from rollstream.graph.optimizers.clipping import clip_scale
from rollstream.graph.optimizers.groups import rate_scale
from rollstream.graph.optimizers.optimizer import Moved, Optimizer
from rollstream.graph.optimizers.rmsprop import RmsProp
from rollstream.graph.optimizers.schedules import (
    Constant,
    Cosine,
    Exponential,
    Linear,
    Piecewise,
    Polynomial,
    Schedule,
    schedule,
)
from rollstream.graph.optimizers.sgd import Sgd
from rollstream.graph.optimizers.value_clip import ValueClip

__all__ = [
    "Adam",
    "AdamW",
    "Constant",
    "Cosine",
    "Exponential",
    "Linear",
    "Moved",
    "Optimizer",
    "Piecewise",
    "Polynomial",
    "RmsProp",
    "Schedule",
    "Sgd",
    "ValueClip",
    "clip_scale",
    "rate_scale",
    "schedule",
]
