"""Sampled runs of rows as transitions of n steps. Pure: arrays in, new arrays out."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.errors import SchemaMismatch
from rollstream.spaces import Flag

__all__ = ["n_step"]


def n_step(rows: npt.NDArray[np.void], lengths: npt.NDArray[np.integer[Any]], *, discount: float) -> dict[str, npt.NDArray[Any]]:
    """Columns of one transition per item: from its first row to its last, over k = length - 1 steps.

    Shapes: rows [B, L] of a table's row dtype, lengths [B] -> columns [B, ...].

    Returns:
        Every column of the first row under its own name (`observation*`, `action*`, what the algorithm added); `reward`: sum of
        discount**j * reward_j for j < k; `discount`: discount**k, or 0 when the last row is a terminal one, for truncation does
        not stop bootstrapping; `next_observation*`: the observations of the last row. All are copies, none shares memory.
    """
    names = rows.dtype.names or ()
    if "reward" not in names or not any(_is_observation(name) for name in names):
        raise SchemaMismatch(f"n_step needs the columns reward and observation; the rows have: {', '.join(names)}")
    steps = lengths.astype(np.int64) - 1
    item = np.arange(len(rows))
    first, last = rows[:, 0], rows[item, steps]
    reward_t = rows["reward"].astype(np.float64)
    counts = np.arange(rows.shape[1]) < steps[:, None]
    powers = discount ** np.arange(rows.shape[1])
    columns: dict[str, npt.NDArray[Any]] = {
        name: first[name].copy() for name in names if name not in ("flags", "version", "reward")
    }
    columns["reward"] = np.where(counts, reward_t * powers, 0.0).sum(axis=1).astype(np.float32)
    terminated = (last["flags"] & Flag.TERMINATED) != 0
    columns["discount"] = np.where(terminated, 0.0, discount**steps).astype(np.float32)
    columns |= {f"next_{name}": last[name].copy() for name in names if _is_observation(name)}
    return columns


def _is_observation(name: str) -> bool:
    return name == "observation" or name.startswith("observation.")
