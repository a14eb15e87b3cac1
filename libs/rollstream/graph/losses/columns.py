"""Inputs that many losses take, each declared once."""

from __future__ import annotations

from dataclasses import replace

from rollstream.graph.inputs import Input

__all__ = ["DISCOUNT", "REWARD", "WEIGHT", "coefficient", "noise_columns"]

WEIGHT = Input(name="weight", low=0.5, high=1.0)
"""Of each row; 0 for padding."""
REWARD = Input(name="reward")
DISCOUNT = Input(name="discount", low=0.0, high=1.0)
"""Of what comes after the row's reward; 0 where the episode terminated."""


def coefficient(name: str, *, high: float = 1.0) -> Input:
    """A setting that may change from update to update."""
    return Input(name=name, role="scalar", per_row=False, low=0.0, high=high)


def noise_columns(noise: tuple[Input, ...], *, prefix: str = "") -> tuple[Input, ...]:
    """Noise of a policy as columns, which whoever updates draws for each row; so the same batch gives the same update everywhere."""
    return tuple(replace(item, name=prefix + item.name, role="column", low=-2.0, high=2.0) for item in noise)
