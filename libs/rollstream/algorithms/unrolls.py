"""From trajectories to sequences of T steps and one row more, which bootstraps: what V-trace losses learn from.

rows    | s0 s1 s2 s3 s4 s5 |        one environment; `begins` is 1 at s0, s5 only bootstraps
steps=3
        s0 s1 s2 s3    s3 s4 s5 (s5)    the last row of a sequence is the first of the next; what is repeated has weight 0
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.graph.policies.memory import PREFIX
from rollstream.spaces import Columns

__all__ = ["unrolls"]

BEGINS, WEIGHT = "begins", "weight"


def unrolls(columns: Columns, *, steps: int) -> dict[str, npt.NDArray[Any]]:
    """Columns [M, ...] to [S, T + 1, ...], T = `steps`; `recurrent.*` to [S, ...], as it was before the first step.

    Args:
        columns: as the step `trajectories` gives them: the last row of each environment has `weight` 0.
    """
    begins = np.flatnonzero(columns[BEGINS])
    lengths = np.diff(begins, append=len(columns[BEGINS]))
    lasts = np.repeat(begins + lengths - 1, lengths)
    every = np.arange(len(lasts))
    starts = every[((every - np.repeat(begins, lengths)) % steps == 0) & (every < lasts)]
    wanted = starts[:, None] + np.arange(steps + 1)
    index = np.minimum(wanted, lasts[starts][:, None])
    counts = columns[WEIGHT][index[:, :-1]].any(axis=1)
    starts, index = starts[counts], index[counts]
    return {
        name: column[starts] if name.startswith(PREFIX) else column[index] for name, column in columns.items() if name != BEGINS
    }
