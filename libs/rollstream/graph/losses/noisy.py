"""Noise of the weights in losses: three columns, drawn by whoever updates, so the same batch gives the same update in every mode.

Each network that a loss evaluates has noise of its own: with shared noise the errors of both would go together, and the gradient
would be biased (Fortunato et al. 2018, arXiv 1706.10295, section 3.1).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rollstream.graph.inputs import Arguments
from rollstream.graph.ops import Array

__all__ = ["CHOICE", "ONLINE", "TARGET", "noise_for", "noisy_columns"]

ONLINE, CHOICE, TARGET = "noisy", "noisy.choice", "noisy.target"
"""Columns: of the values that learn, of those that choose the next action, and of those that value it."""


def noisy_columns(policy: Any) -> Arguments:
    """The argument `noisy` of a loss: columns [B, W], standard normal; none for a policy without noisy layers."""
    noise = getattr(policy, "noise", ())
    return {"noisy": tuple(replace(noise[0], name=name) for name in (ONLINE, CHOICE, TARGET))} if noise else {}


def noise_for(noisy: Mapping[str, Array] | None, network: str) -> Mapping[str, Array]:
    """Further arguments of the API that gives values."""
    return {} if noisy is None else {"noisy": noisy[network]}
