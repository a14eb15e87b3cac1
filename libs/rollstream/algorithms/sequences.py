"""From rows in a line to sequences of equal length, as recurrent policies learn from them.

    rows   | a0 a1 a2 a3 a4 | b0 b1 b2 |        runs of environments, one after the other; `begins` is 1 at a0 and b0
    steps=3
           a0 a1 a2    a3 a4 (a4)    b0 b1 b2   what is repeated in brackets has weight 0

Each row holds what the policy remembered before it (`recurrent.*`), so that a sequence may start anywhere; episodes that begin
inside one are told by `first`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.graph.policies.memory import PREFIX
from rollstream.spaces import Columns

__all__ = ["sequences"]

BEGINS, WEIGHT = "begins", "weight"


def sequences(columns: Columns, *, steps: int) -> dict[str, npt.NDArray[Any]]:
    """Columns [M, ...] to [S, T, ...], T = `steps`; `recurrent.*` to [S, ...], as it was before the first step.

    Args:
        columns: with `begins` [M], 1 where a row does not follow the row before; `weight` [M] is 1 when it is missing.
    """
    begins = columns[BEGINS] != 0
    every = np.arange(len(begins))
    position = every - np.flatnonzero(begins)[np.cumsum(begins) - 1]
    starts = np.flatnonzero(position % steps == 0)
    wanted = starts[:, None] + np.arange(steps)
    ends = np.append(starts[1:], len(begins))[:, None]
    index = np.minimum(wanted, ends - 1)
    weight = columns.get(WEIGHT, np.ones(len(begins), np.float32))
    found = {
        name: column[starts] if name.startswith(PREFIX) else column[index] for name, column in columns.items() if name != BEGINS
    }
    return {**found, WEIGHT: np.where(wanted < ends, weight[index], np.float32(0))}
