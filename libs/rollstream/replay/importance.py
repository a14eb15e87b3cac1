"""Importance weights of prioritized samples: the one place where they are computed."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from rollstream.errors import ConfigError

__all__ = ["importance_weights"]


def importance_weights(
    probability: npt.NDArray[np.float64],
    table_items: int,
    *,
    beta: float,
    normalize: Literal["batch", "none"] | float = "batch",
) -> npt.NDArray[np.float32]:
    """(N * p) ** -beta: corrects the bias of drawing item i with probability p_i rather than 1 / N.

    Shapes: probability [B] -> [B]. Probabilities are > 0 for everything a table returns.

    Args:
        table_items: N, the items that could be drawn.
        beta: 0 corrects nothing, 1 everything.
        normalize: `batch` divides by the largest weight of the batch, so that weights are at most 1; `none` leaves them;
            a number divides by the weight of an item with that probability (the smallest of the table: "memory").
    """
    if len(probability) and not (probability > 0.0).all():
        raise ConfigError(f"importance weights need probabilities > 0, the smallest is {probability.min():g}")
    weight = (table_items * probability) ** -beta
    if normalize == "batch":
        weight = weight / weight.max() if len(weight) else weight
    elif normalize != "none":
        weight = weight / (table_items * float(normalize)) ** -beta
    return weight.astype(np.float32)
